"""The count of phrases that the project replaces, and its budgets."""

from __future__ import annotations

import pytest

from check_language import (
    Rules,
    area_of,
    budget_errors,
    count_by_area,
    find_matches,
    with_budget,
)

TOML = """
[[phrase]]
pattern = "so many"
use = "n rows"

[[phrase]]
pattern = '(?-i:Of) \\w+'
use = "subject first"

[[phrase]]
pattern = "gaps"
use = "missing values"
only = ["src/*"]
except = ["src/spinney/plot/*"]

[[allow]]
path = "docs/a.md"
text = "not so many"

[budget]
"docs" = 2
"src/spinney/tree" = 1
"""


@pytest.fixture
def rules() -> Rules:
    return Rules.from_toml(TOML)


def matched(rules: Rules, path: str, text: str) -> list[tuple[int, str]]:
    return [(match.line, match.phrase.name) for match in find_matches(path, text, rules)]


def test_match_has_line_and_replacement(rules):
    (match,) = find_matches("docs/b.md", "one\nUse so many trees.\n", rules)
    assert str(match) == "docs/b.md:2: Use so many trees.  [so many → n rows]"


@pytest.mark.parametrize(
    "text",
    [
        "So Many rows",  # in any case
        "so\nmany",
        "// so\n  // many",  # across the lines of a comment
        "so_many = 3",  # names, too
    ],
)
def test_match_variants(rules, text):
    assert matched(rules, "cpp/a.h", text) == [(1, "so many")]


@pytest.mark.parametrize("text", ["also many", "so manyfold", "one of rows"])
def test_no_match_within_words_or_with_another_case(rules, text):
    assert matched(rules, "docs/b.md", text) == []


def test_paths_of_a_phrase(rules):
    assert matched(rules, "src/spinney/tree/a.py", "gaps") == [(1, "gaps")]
    assert matched(rules, "src/spinney/plot/a.py", "gaps") == []
    assert matched(rules, "docs/a.md", "gaps") == []


def test_allowed_lines(rules):
    assert matched(rules, "src/a.py", "x = 1  # so many  (language: allow)") == []
    assert matched(rules, "docs/a.md", "There are not so many.\nBut so many.") == [(2, "so many")]


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("src/spinney/tree/export/_svg.py", "src/spinney/tree"),
        ("src/spinney/patch.py", "src/spinney"),
        ("cpp/spinney/boosting/booster.h", "cpp/spinney/boosting"),
        ("tests/python/test_tree.py", "tests"),
        ("README.md", "README.md"),
    ],
)
def test_areas(path, area):
    assert area_of(path) == area


def test_budget_met(rules):
    matches = [
        *find_matches("docs/b.md", "so many, so many", rules),
        *find_matches("src/spinney/tree/a.py", "Of rows", rules),
    ]
    assert budget_errors(count_by_area(matches), rules.budget) == []


def test_budget_exceeded(rules):
    (error,) = budget_errors({"docs": 3, "src/spinney/tree": 1}, rules.budget)
    assert error.startswith("docs: 3 phrases, budget 2")
    (error,) = budget_errors({"docs": 2, "src/spinney/tree": 1, "bindings": 1}, rules.budget)
    assert error.startswith("bindings: 1 phrases, budget 0")


def test_stale_budget(rules):
    (error,) = budget_errors({"docs": 2}, rules.budget)
    assert error == "src/spinney/tree: 0 phrases, budget 1; lower the budget to 0"


def test_budget_is_rewritten_alone():
    text = with_budget(TOML, {"docs": 1, "tests": 0})
    assert text.partition("\n[budget]\n")[0] == TOML.partition("\n[budget]\n")[0]
    assert Rules.from_toml(text).budget == {"docs": 1}
