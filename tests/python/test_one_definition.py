"""C++ names have one definition each; tests of the check, and of the core."""

import subprocess
import sys

import pytest

import one_definition
from one_definition import definitions, find_duplicates


def test_no_core_name_is_defined_in_two_files():
    sources = one_definition.read_sources(one_definition.FOLDERS)
    assert len(sources) > 200
    assert sum(len(list(definitions(text))) for text in sources.values()) > 700
    assert find_duplicates(sources) == {}


def test_each_folder_is_a_namespace():
    for file, text in one_definition.read_sources(one_definition.FOLDERS[:2]).items():
        folder = file.split("/")[2] if file.startswith("cpp/") else "bindings"
        names = list(definitions(text))
        assert [name for name in names if not name.startswith(f"spinney::{folder}::")] == [], file


def test_command_finds_no_duplicates():
    run = subprocess.run([sys.executable, one_definition.__file__], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "")


METRICS = """
#pragma once
namespace spinney {
// struct Comment {};
struct Euclidean { double root(double sum) const { return sum; } };
inline constexpr std::size_t n_lanes = 8;
INLINE Lanes load(const double* from) { Lanes out = {}; return out; }
template <class Real> Real magnitude(Real value) { return value < 0 ? -value : value; }
using Lanes = double __attribute__((vector_size(64)));
}  // namespace spinney
"""


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ("namespace spinney { struct Euclidean { int a; }; }", ["spinney::Euclidean"]),
        ("namespace spinney { constexpr std::size_t n_lanes{8}; }", ["spinney::n_lanes"]),
        ("namespace spinney { int load(double const* p); int load(int p) { return p; } }", []),
        (
            "namespace spinney { Other load(const double* p) { return {}; } }",
            ["spinney::load(const double*)"],
        ),
        (
            "namespace spinney {\ntemplate <class T>\nT magnitude(Real x = {}) { return x; } }",
            ["spinney::magnitude(Real)"],
        ),
        ("namespace spinney { using Lanes = float; class Euclidean; }", ["spinney::Lanes"]),
        (
            "namespace spinney {\ntemplate <class T>\nvoid Search<T>::load(const double* p) {} }",
            [],
        ),
        ("namespace spinney { namespace { struct Euclidean {}; int n_lanes = 1; } }", []),
        ("namespace spinney::distance { struct Euclidean {}; }", []),
        ("namespace spinney { static int n_lanes = 2; extern int Lanes; }", []),
        ("struct Euclidean {}; auto n_lanes = [] { return 1; }();", []),
    ],
)
def test_duplicates_are_found(other, names):
    assert list(find_duplicates({"a.h": METRICS, "b.h": other})) == names


def test_all_forms_of_definitions_are_found():
    text = """
    extern "C" { int plain(int a) { return a; } }
    namespace a::b {
    template <> struct Holder<int> final : Base<int> { int value{}; } holder;
    enum class Kind : std::uint8_t { one, two };
    struct alignas(32) Keys { std::uint32_t lane[8]; };
    Tree::Tree(std::vector<int> rows, int n) : rows_{std::move(rows)}, n_(n), map_<int>{} { go(); }
    Tree::~Tree() = default;
    bool operator==(const Tree& a, const Tree& b) { return &a == &b; }
    double Tree::operator()(const double* a, std::size_t d) const noexcept { return a[d]; }
    std::function<void(int)> make(const std::map<int, std::vector<double>>& of = {}) { return {}; }
    const char* const text = "struct Quoted { };";
    std::vector<int> numbers{1, 2};
    void declared(int);
    TEST(of_a_macro) { struct Local {}; }
    }
    """
    assert list(definitions(text)) == [
        "plain(int)",
        "a::b::Holder<int>",
        "a::b::Kind",
        "a::b::Keys",
        "a::b::Tree::Tree(std::vector<int>, int)",
        "a::b::Tree::~Tree()",
        "a::b::operator==(const Tree&, const Tree&)",
        "a::b::Tree::operator()(const double*, std::size_t)",
        "a::b::make(const std::map<int, std::vector<double>>&)",
        "a::b::text",
        "a::b::numbers",
    ]
