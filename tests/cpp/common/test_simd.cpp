#include "spinney/common/simd.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "common/versions.h"
#include "testing.h"

using namespace spinney::common;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class V>
SPINNEY_INLINE void arithmetic(const double* from, double* out) {
  using T = Lane<V>;
  constexpr std::size_t n = lane_count<V>;
  T values[n];
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<T>(from[i]);
  const V x = load<V>(values);
  const V y = x * x + T{1};
  T stored[n];
  store(stored, y);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(stored[i]);
}

template <class V>
SPINNEY_INLINE void choices(const double* a, const double* b, double* out) {
  constexpr std::size_t n = lane_count<V>;
  const V x = load<V>(a), y = load<V>(b);
  const Mask<V> smaller = x < y;
  store(out, minimum(x, y));
  store(out + n, maximum(x, y));
  store(out + 2 * n, select(smaller, x, y));
  store(out + 3 * n, select_bits(smaller, x, y));
  store(out + 4 * n, keep(smaller, x));
  store(out + 5 * n, absolute(x));
}

template <class V>
SPINNEY_INLINE void beginnings(const double* from, std::size_t n, double* out) {
  store(out, keep_first(load<V>(from), n));
  store(out + lane_count<V>, load_first<V>(from, n));
}

template <class V>
SPINNEY_INLINE Lane<V> sum_of(const Lane<V>* from) {
  return sum_lanes(load<V>(from));
}

template <class V>
SPINNEY_INLINE Lane<V> largest_of(const Lane<V>* from) {
  return join_lanes(load<V>(from),
                    [](auto a, auto b) SPINNEY_INLINE_LAMBDA { return a < b ? b : a; });
}

template <class V>
SPINNEY_INLINE void sums_of_four(const Lane<V>* from, Lane<V>* out) {
  constexpr std::size_t n = lane_count<V>;
  store(out,
        sum_four(load<V>(from), load<V>(from + n), load<V>(from + 2 * n), load<V>(from + 3 * n)));
}

SPINNEY_INLINE void conversions(const float* from, double* doubles, std::int32_t* ints,
                                std::uint8_t* bytes) {
  store(doubles, convert<Doubles8>(load<Floats8>(from)));
  const Ints16 whole = convert<Ints16>(load<Floats16>(from));
  store(ints, whole);
  store(bytes, convert<Bytes16>(whole));
}

SPINNEY_INLINE void broadcasts(double value, double* doubles, std::uint8_t* bytes) {
  store(doubles, broadcast<Doubles8>(value));
  store(bytes, broadcast<Bytes64>(200));
}

SPINNEY_INLINE void compare_bytes(const std::uint8_t* from, std::uint8_t limit, std::uint8_t* out) {
  const Bytes64 values = load<Bytes64>(from);
  store(out, select(values > broadcast<Bytes64>(limit), broadcast<Bytes64>(1), values));
}

SPINNEY_INLINE void shuffles(const double* from, double* out) {
  const auto a = load<Doubles4>(from), b = load<Doubles4>(from + 4);
  store(out, shuffle<0, 4, 3, 7>(a, b));
  store(out + 4, shuffle<3, 2, 1, 0>(a));
  store(out + 8, lower_half(load<Doubles8>(from)));
  store(out + 12, upper_half(load<Doubles8>(from)));
}

template <class T>
std::vector<T> fractions(std::size_t n) {
  std::vector<T> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = T{1} / static_cast<T>(3 * i + 1);
  return out;
}

template <class V>
void check_arithmetic() {
  const double from[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 3, 2, 1, 0};
  for (const auto version : testing::versions<arithmetic<V>>()) {
    double out[16];
    version(from, out);
    for (std::size_t i = 0; i < lane_count<V>; ++i) CHECK(out[i] == from[i] * from[i] + 1);
  }
}

template <class V>
void check_sums() {
  constexpr std::size_t n = lane_count<V>;
  using T = Lane<V>;
  const std::vector<T> values = fractions<T>(4 * n);
  T expected[4];
  for (std::size_t k = 0; k < 4; ++k) {
    std::vector<T> left(values.begin() + static_cast<std::ptrdiff_t>(k * n),
                        values.begin() + static_cast<std::ptrdiff_t>((k + 1) * n));
    for (std::size_t half = n / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) left[i] = left[i] + left[i + half];
    }
    expected[k] = left[0];
  }
  for (const auto version : testing::versions<sum_of<V>>()) {
    CHECK(version(values.data()) == expected[0]);
  }
  for (const auto version : testing::versions<largest_of<V>>()) CHECK(version(values.data()) == 1);
  for (const auto version : testing::versions<sums_of_four<V>>()) {
    T out[4];
    version(values.data(), out);
    for (std::size_t k = 0; k < 4; ++k) CHECK(out[k] == expected[k]);
  }
}

}  // namespace

TEST(vectors_compute_lane_by_lane) {
  check_arithmetic<Doubles2>();
  check_arithmetic<Doubles4>();
  check_arithmetic<Doubles8>();
  check_arithmetic<Floats4>();
  check_arithmetic<Floats8>();
  check_arithmetic<Floats16>();
  check_arithmetic<Longs8>();
  check_arithmetic<Ints16>();
  check_arithmetic<Bytes16>();
}

TEST(vectors_choose_lanes) {
  const double a[] = {1, 5, -0.0, 7, not_a_number, 3, -2, -9};
  const double b[] = {2, 4, 0.0, 7, 1, not_a_number, -3, 8};
  for (const auto version : testing::versions<choices<Doubles8>>()) {
    double out[6][8];
    version(a, b, out[0]);
    for (std::size_t i = 0; i < 8; ++i) {
      const bool smaller = a[i] < b[i];
      const double expected[] = {smaller ? a[i] : b[i], smaller ? b[i] : a[i],
                                 smaller ? a[i] : b[i], smaller ? a[i] : b[i],
                                 smaller ? a[i] : 0.0,  std::abs(a[i])};
      for (std::size_t k = 0; k < 6; ++k) {
        CHECK(std::memcmp(&out[k][i], &expected[k], sizeof(double)) == 0);
      }
    }
  }
}

TEST(vectors_keep_first_lanes) {
  const double values[] = {1, 2, 3, 4, not_a_number, 6, 7, 8};
  for (const auto version : testing::versions<beginnings<Doubles8>>()) {
    for (std::size_t n = 0; n <= 8; ++n) {
      double out[16];
      version(values, n, out);
      for (std::size_t i = 0; i < 8; ++i) {
        const double expected = i < n ? values[i] : 0.0;
        CHECK(std::memcmp(out + i, &expected, sizeof(double)) == 0);
        CHECK(std::memcmp(out + 8 + i, &expected, sizeof(double)) == 0);
      }
    }
  }
}

TEST(vectors_add_lanes_in_a_fixed_order) {
  check_sums<Doubles4>();
  check_sums<Doubles8>();
  check_sums<Floats4>();
  check_sums<Floats8>();
  check_sums<Floats16>();
  const std::vector<double> eight = fractions<double>(8);
  CHECK(sum_eight(eight.data()) == sum_of<Doubles8>(eight.data()));
}

TEST(vectors_convert_lanes) {
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = 0.75F + 13.0F * static_cast<float>(i);
  for (const auto version : testing::versions<conversions>()) {
    double doubles[8];
    std::int32_t ints[16];
    std::uint8_t bytes[16];
    version(values, doubles, ints, bytes);
    for (int i = 0; i < 8; ++i) CHECK(doubles[i] == static_cast<double>(values[i]));
    for (int i = 0; i < 16; ++i) CHECK(ints[i] == 13 * i);
    for (int i = 0; i < 16; ++i) CHECK(bytes[i] == 13 * i);
  }
}

TEST(vectors_broadcast_every_bit) {
  for (const auto version : testing::versions<broadcasts>()) {
    double doubles[8];
    std::uint8_t bytes[64];
    version(-0.0, doubles, bytes);
    for (const double value : doubles) CHECK(value == 0 && std::signbit(value));
    for (const std::uint8_t value : bytes) CHECK(value == 200);
  }
}

TEST(vectors_compare_unsigned_bytes) {
  std::uint8_t values[64];
  for (int i = 0; i < 64; ++i) values[i] = static_cast<std::uint8_t>(4 * i);
  for (const auto version : testing::versions<compare_bytes>()) {
    std::uint8_t out[64];
    version(values, 130, out);
    for (int i = 0; i < 64; ++i) CHECK(out[i] == (values[i] > 130 ? 1 : values[i]));
  }
}

TEST(vectors_shuffle_lanes) {
  const double values[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const double expected[] = {0, 4, 3, 7, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7};
  for (const auto version : testing::versions<shuffles>()) {
    double out[16];
    version(values, out);
    for (int i = 0; i < 16; ++i) CHECK(out[i] == expected[i]);
  }
}
