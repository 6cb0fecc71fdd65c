#include <cstdint>
#include <string>
#include <vector>

#include "common/versions.h"
#include "spinney/common/compiler.h"
#include "spinney/common/dispatch.h"
#include "testing.h"

namespace common = spinney::common;

namespace {

template <class T>
SPINNEY_INLINE T sum_squares(const T* values, std::size_t n) {
  T sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += values[i] * values[i];
  return sum;
}

// a*b+c must not be contracted in any version.
SPINNEY_INLINE void multiply_add(const double* a, const double* b, double* c, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) c[i] += a[i] * b[i];
}

SPINNEY_INLINE std::vector<int>& append(std::vector<int>& to, std::vector<int>&& from) {
  to.insert(to.end(), from.begin(), from.end());
  return to;
}

struct Span {
  const int* values;
  std::size_t n;
};

SPINNEY_INLINE int sum_span(const Span& span) { return sum_squares(span.values, span.n); }

}  // namespace

TEST(dispatch_calls_functions_and_instances_of_templates) {
  const double doubles[] = {1, 2, 3};
  const float floats[] = {1, 2, 3};
  CHECK(common::dispatch<sum_squares<double>>(doubles, 3) == 14);
  CHECK(common::dispatch<sum_squares<float>>(floats, 3) == 14);
}

TEST(dispatch_takes_references_temporaries_and_braces) {
  const int values[] = {1, 2, 3};
  CHECK(common::dispatch<sum_span>({values, 2}) == 5);
  std::vector<int> all = {1};
  std::vector<int>& same = common::dispatch<append>(all, std::vector<int>{2, 3});
  CHECK(&same == &all);
  CHECK(all.size() == 3);
}

TEST(dispatch_never_contracts) {
  constexpr std::size_t n = 37;
  std::vector<double> a(n), b(n), expected(n), c(n);
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = 1.0 + 0x1p-30 * static_cast<double>(i);
    b[i] = 1.0 - 0x1p-30 * static_cast<double>(i);
    c[i] = -1.0;
    // 1 - i² 2^-60 rounds to a number that a fused operation would not see.
    volatile double product = a[i] * b[i];
    expected[i] = c[i] + product;
  }
  for (const auto version : testing::versions<multiply_add>()) {
    std::vector<double> out = c;
    version(a.data(), b.data(), out.data(), n);
    CHECK(out == expected);
  }
}

TEST(dispatch_versions_agree) {
  std::vector<double> values(101);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0 / static_cast<double>(i + 3);
  const double expected = common::dispatch<sum_squares<double>>(values.data(), values.size());
  for (const auto version : testing::versions<sum_squares<double>>()) {
    CHECK(version(values.data(), values.size()) == expected);
  }
}

TEST(instruction_set_has_a_name) {
  const std::string name = common::instruction_set_name();
  CHECK(name == "baseline" || name == "avx2" || name == "avx512");
}

TEST(multiply_wide_gives_both_halves) {
  constexpr common::WideProduct product =
      common::multiply_wide(0xfedcba9876543210ULL, 0x0123456789abcdefULL);
  static_assert(product.high == 0x0121fa00ad77d742ULL);
  static_assert(product.low == 0x2236d88fe5618cf0ULL);
  constexpr std::uint64_t most = ~std::uint64_t{0};
  CHECK(common::multiply_wide(most, most).high == most - 1);
  CHECK(common::multiply_wide(most, most).low == 1);
}
