// Short vectors: several numbers, the *lanes*, that one instruction works on. Vec<T, n> is the
// compilers' own vector type, so +, -, *, /, &, |, ^, <, == and v[i] work lane by lane, also with
// one scalar operand. The compiler splits a vector that is wider than the processor's registers.
//
// A kernel chooses the number of lanes by its algorithm and not by the processor, and adds lanes in
// the fixed order of `sum_lanes`. Its results are then the same bits on every processor.
//
// Vectors must not be parameters or results of functions that are not SPINNEY_INLINE: how they are
// passed depends on the instruction set.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "spinney/common/compiler.h"

namespace spinney::common {

namespace detail {

template <class T, std::size_t n>
struct VectorOf {
  static_assert(n * sizeof(T) == 16 || n * sizeof(T) == 32 || n * sizeof(T) == 64);
  typedef T type __attribute__((vector_size(n * sizeof(T))));
};

}  // namespace detail

// n lanes of type T in 16, 32 or 64 bytes.
template <class T, std::size_t n>
using Vec = typename detail::VectorOf<T, n>::type;

using Doubles2 = Vec<double, 2>;
using Doubles4 = Vec<double, 4>;
using Doubles8 = Vec<double, 8>;
using Floats4 = Vec<float, 4>;
using Floats8 = Vec<float, 8>;
using Floats16 = Vec<float, 16>;
using Longs2 = Vec<std::int64_t, 2>;
using Longs4 = Vec<std::int64_t, 4>;
using Longs8 = Vec<std::int64_t, 8>;
using Ints4 = Vec<std::int32_t, 4>;
using Ints8 = Vec<std::int32_t, 8>;
using Ints16 = Vec<std::int32_t, 16>;
using Unsigned8 = Vec<std::uint32_t, 8>;
using Unsigned16 = Vec<std::uint32_t, 16>;
using Shorts32 = Vec<std::int16_t, 32>;
using Bytes16 = Vec<std::uint8_t, 16>;
using Bytes32 = Vec<std::uint8_t, 32>;
using Bytes64 = Vec<std::uint8_t, 64>;

template <class V>
using Lane = std::remove_cvref_t<decltype(std::declval<V&>()[0])>;

template <class V>
inline constexpr std::size_t lane_count = sizeof(V) / sizeof(Lane<V>);

// The type of a comparison: signed integers as wide as the lanes, -1 for true and 0 for false.
template <class V>
using Mask = decltype(std::declval<V>() < std::declval<V>());

// Reads all lanes; the address needs no alignment.
template <class V>
SPINNEY_INLINE V load(const Lane<V>* from) {
  V out;
  std::memcpy(&out, from, sizeof(out));
  return out;
}

template <class V>
SPINNEY_INLINE void store(Lane<V>* to, const V& values) {
  std::memcpy(to, &values, sizeof(values));
}

// The same bits as lanes of another type.
template <class To, class From>
SPINNEY_INLINE To cast_bits(const From& values) {
  static_assert(sizeof(To) == sizeof(From));
  return reinterpret_cast<To>(values);
}

namespace detail {

template <class V>
struct LaneMasks {
  using T = Lane<Mask<V>>;
  static constexpr std::size_t n = lane_count<V>;
  // n times -1, then n times 0
  struct Table {
    T values[2 * n];
    constexpr Table() : values() {
      for (std::size_t i = 0; i < n; ++i) values[i] = -1;
    }
  };
  alignas(64) static constexpr Table table{};
};

}  // namespace detail

// All lanes have the value. As integers: GCC 12 writes equal floating-point lanes one by one.
template <class V>
SPINNEY_INLINE V broadcast(Lane<V> value) {
  if constexpr (std::is_floating_point_v<Lane<V>>) {
    return cast_bits<V>(Mask<V>{} + std::bit_cast<Lane<Mask<V>>>(value));
  } else {
    return V{} + value;
  }
}

// Lane by lane as static_cast. A number that an integer lane cannot hold gives a result that
// depends on the processor.
template <class To, class From>
SPINNEY_INLINE To convert(const From& values) {
  static_assert(lane_count<To> == lane_count<From>);
  return __builtin_convertvector(values, To);
}

// `yes` in the lanes where the mask is -1, `no` where it is 0.
template <class V>
SPINNEY_INLINE V select(const Mask<V>& mask, const V& yes, const V& no) {
  return mask ? yes : no;
}

// The same by bit operations. Better where the mask comes from memory or from other masks: the
// compiler may work lane by lane on `select` then.
template <class V>
SPINNEY_INLINE V select_bits(const Mask<V>& mask, const V& yes, const V& no) {
  return cast_bits<V>((cast_bits<Mask<V>>(yes) & mask) | (cast_bits<Mask<V>>(no) & ~mask));
}

// The values in the lanes where the mask is -1, else 0.
template <class V>
SPINNEY_INLINE V keep(const Mask<V>& mask, const V& values) {
  return cast_bits<V>(cast_bits<Mask<V>>(values) & mask);
}

// A mask that is -1 in the first `n` lanes.
template <class V>
SPINNEY_INLINE Mask<V> first_lanes(std::size_t n) {
  using Masks = detail::LaneMasks<V>;
  Mask<V> out;
  std::memcpy(&out, Masks::table.values + (Masks::n - n), sizeof(out));
  return out;
}

// Reads the first `n` lanes only; the others are 0.
template <class V>
SPINNEY_INLINE V load_first(const Lane<V>* from, std::size_t n) {
  V out = {};
  for (std::size_t i = 0; i < n; ++i) out[i] = from[i];
  return out;
}

// The first `n` lanes; the others become 0, also if they were NaN.
template <class V>
SPINNEY_INLINE V keep_first(const V& values, std::size_t n) {
  return keep(first_lanes<V>(n), values);
}

template <class V>
SPINNEY_INLINE V absolute(const V& values) {
  if constexpr (std::is_floating_point_v<Lane<V>>) {
    return keep(broadcast<Mask<V>>(std::numeric_limits<Lane<Mask<V>>>::max()), values);
  } else {
    return values < 0 ? -values : values;
  }
}

// a < b ? a : b, which is b if one of them is NaN.
template <class V>
SPINNEY_INLINE V minimum(const V& a, const V& b) {
  return a < b ? a : b;
}

// a < b ? b : a, which is a if one of them is NaN.
template <class V>
SPINNEY_INLINE V maximum(const V& a, const V& b) {
  return a < b ? b : a;
}

// Lanes by their numbers; those of b follow those of a.
template <int... lanes, class V>
SPINNEY_INLINE Vec<Lane<V>, sizeof...(lanes)> shuffle(const V& a, const V& b) {
  return __builtin_shufflevector(a, b, lanes...);
}

template <int... lanes, class V>
SPINNEY_INLINE Vec<Lane<V>, sizeof...(lanes)> shuffle(const V& a) {
  return __builtin_shufflevector(a, a, lanes...);
}

namespace detail {

template <class V, std::size_t first, std::size_t... i>
SPINNEY_INLINE auto take(const V& values, std::index_sequence<i...>) {
  return shuffle<static_cast<int>(first + i)...>(values);
}

}  // namespace detail

template <class V>
SPINNEY_INLINE auto lower_half(const V& values) {
  return detail::take<V, 0>(values, std::make_index_sequence<lane_count<V> / 2>());
}

template <class V>
SPINNEY_INLINE auto upper_half(const V& values) {
  return detail::take<V, lane_count<V> / 2>(values, std::make_index_sequence<lane_count<V> / 2>());
}

// One number from all lanes: the halves are joined until one lane remains. For eight lanes that is
// join(join(join(0, 4), join(2, 6)), join(join(1, 5), join(3, 7))). `join` takes two vectors or two
// numbers.
template <class V, class Join>
SPINNEY_INLINE Lane<V> join_lanes(const V& values, const Join& join) {
  if constexpr (sizeof(V) == 16 && lane_count<V> == 2) {
    return join(values[0], values[1]);
  } else if constexpr (sizeof(V) == 16 && lane_count<V> == 4) {
    return join(join(values[0], values[2]), join(values[1], values[3]));
  } else {
    static_assert(sizeof(V) > 16, "lanes of at least 4 bytes");
    return join_lanes(join(lower_half(values), upper_half(values)), join);
  }
}

// The sum of all lanes in the order of join_lanes: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)).
template <class V>
SPINNEY_INLINE Lane<V> sum_lanes(const V& values) {
  if constexpr (sizeof(V) == 16 && lane_count<V> == 2) {
    return values[0] + values[1];
  } else if constexpr (sizeof(V) == 16 && lane_count<V> == 4) {
    return (values[0] + values[2]) + (values[1] + values[3]);
  } else {
    static_assert(sizeof(V) > 16, "lanes of at least 4 bytes");
    return sum_lanes(lower_half(values) + upper_half(values));
  }
}

// The same sum of eight numbers in memory.
template <class T>
SPINNEY_INLINE T sum_eight(const T* v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

namespace detail {

template <class V>
SPINNEY_INLINE auto fold_to_four(const V& values) {
  if constexpr (lane_count<V> == 4) {
    return values;
  } else {
    return fold_to_four(lower_half(values) + upper_half(values));
  }
}

}  // namespace detail

// The sums of four vectors, each with the bits of sum_lanes.
template <class V>
SPINNEY_INLINE Vec<Lane<V>, 4> sum_four(const V& a, const V& b, const V& c, const V& d) {
  const auto p = detail::fold_to_four(a), q = detail::fold_to_four(b);
  const auto r = detail::fold_to_four(c), s = detail::fold_to_four(d);
  const auto pq = shuffle<0, 1, 4, 5>(p, q) + shuffle<2, 3, 6, 7>(p, q);
  const auto rs = shuffle<0, 1, 4, 5>(r, s) + shuffle<2, 3, 6, 7>(r, s);
  return shuffle<0, 2, 4, 6>(pq, rs) + shuffle<1, 3, 5, 7>(pq, rs);
}

}  // namespace spinney::common
