#include "spinney/boosting/row_division.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "spinney/common/parallel.h"

namespace spinney::boosting {

using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

constexpr std::size_t ahead = 64;  // rows whose codes are asked for before they are needed
constexpr std::size_t largest_block = 16'384;

int threads_for(std::size_t n, int n_threads) {
  return worthwhile_threads(4.0 * static_cast<double>(n), n_threads, true);
}

// flags[i] = whether rows[i] (null: row i) goes left; returns how many do. Locals, since the
// compiler takes a store into bytes for one that may change anything else.
std::size_t mark(const RowDivision& division, const Row* rows, std::size_t begin, std::size_t end,
                 std::uint8_t* __restrict flags) {
  const std::uint8_t* const codes = division.codes;
  const std::uint8_t* const left = division.left.data();
  const std::size_t stride = division.stride;
  std::size_t count = 0;
  if (rows == nullptr) {
    for (std::size_t i = begin; i < end; ++i) count += flags[i] = left[codes[i]];
    return count;
  }
  std::size_t i = begin;
  if (division.far_apart) {
    for (; i + ahead < end; ++i) {
      __builtin_prefetch(codes + rows[i + ahead] * stride, 0, 2);
      count += flags[i] = left[codes[rows[i] * stride]];
    }
  }
  for (; i < end; ++i) count += flags[i] = left[codes[rows[i] * stride]];
  return count;
}

// Rows with a flag go to at_left and after, the others to at_right and after.
void deal(const Row* rows, const PackedSum* packed, const std::uint8_t* flags, std::size_t begin,
          std::size_t end, std::size_t at_left, std::size_t at_right, const RowsAndSums& to) {
  Row* __restrict const to_rows = to.rows;
  PackedSum* __restrict const to_packed = to.packed;
  const auto put = [&](std::size_t i, Row row, bool with_sum) {
    const std::size_t flag = flags[i];
    // By arithmetic: nobody can foresee the flags, so a branch would cost more than all else.
    const std::size_t at = at_right + ((at_left - at_right) & (0 - flag));
    to_rows[at] = row;
    if (with_sum) to_packed[at] = packed[i];
    at_left += flag;
    at_right += 1 - flag;
  };
  if (rows == nullptr && packed == nullptr) {
    for (std::size_t i = begin; i < end; ++i) put(i, static_cast<Row>(i), false);
  } else if (rows == nullptr) {
    for (std::size_t i = begin; i < end; ++i) put(i, static_cast<Row>(i), true);
  } else if (packed == nullptr) {
    for (std::size_t i = begin; i < end; ++i) put(i, rows[i], false);
  } else {
    for (std::size_t i = begin; i < end; ++i) put(i, rows[i], true);
  }
}

// Divides n rows where they lie, or writes them if `first` is the first of them; returns how many
// go left. Every row is written to both sides, and stays where it is counted: no branch.
std::size_t divide_block(const RowDivision& division, Row* rows, std::size_t n, const Row* first) {
  const std::uint8_t* const codes = division.codes;
  const std::uint8_t* const left = division.left.data();
  const std::size_t stride = division.stride;
  std::array<Row, largest_block> to_right;
  std::size_t n_left = 0;
  std::size_t n_right = 0;
  const auto put = [&](Row row) {
    const std::size_t flag = left[codes[row * stride]];
    rows[n_left] = row;
    to_right[n_right] = row;
    n_left += flag;
    n_right += 1 - flag;
  };
  std::size_t i = 0;
  if (first != nullptr) {
    for (; i < n; ++i) put(*first + static_cast<Row>(i));
  }
  for (; i + ahead < n; ++i) {
    __builtin_prefetch(codes + rows[i + ahead] * stride, 0, 2);
    put(rows[i]);
  }
  for (; i < n; ++i) put(rows[i]);
  std::copy_n(to_right.data(), n_right, rows + n_left);
  return n_left;
}

// Of blocks that each have their left rows first: all left rows first. Rows of the first blocks
// that go right change places with rows of the last ones that go left, many at a time.
void join_sides(Row* rows, std::size_t n, const std::vector<std::size_t>& n_left) {
  std::size_t front = 0;  // blocks, from either end
  std::size_t back = n_left.size() - 1;
  std::size_t low = n_left[front];  // the first row of the front block that goes right
  std::size_t high = back * largest_block + n_left[back];  // past the last of the back one …
  for (;;) {
    const std::size_t front_end = std::min(n, (front + 1) * largest_block);
    const std::size_t back_begin = back * largest_block;
    if (front >= back) return;
    const std::size_t count = std::min(front_end - low, high - back_begin);
    std::swap_ranges(rows + low, rows + low + count, rows + high - count);
    low += count;
    high -= count;
    if (low == front_end) {
      ++front;
      low = front * largest_block + n_left[front];
    }
    if (high == back_begin && back > 0) {
      --back;
      high = back * largest_block + n_left[back];
    }
  }
}

}  // namespace

std::size_t divide_rows(const RowDivision& division, const RowsAndSums& from, std::size_t n,
                        int n_threads, std::uint8_t* flags, const RowsAndSums& to) {
  const int threads = threads_for(n, n_threads);
  const std::size_t block_rows =
      std::clamp<std::size_t>(n / static_cast<std::size_t>(threads) + 1, 1024, largest_block);
  const std::size_t n_blocks = (n + block_rows - 1) / block_rows;
  std::vector<std::size_t> n_left(n_blocks + 1);
  parallel_for(n_blocks, threads, [&](std::size_t block, int) {
    const std::size_t begin = block * block_rows;
    const std::size_t end = std::min(n, begin + block_rows);
    n_left[block + 1] = mark(division, from.rows, begin, end, flags);
  });
  std::partial_sum(n_left.begin(), n_left.end(), n_left.begin());
  const std::size_t total_left = n_left[n_blocks];
  parallel_for(n_blocks, threads, [&](std::size_t block, int) {
    const std::size_t begin = block * block_rows;
    const std::size_t end = std::min(n, begin + block_rows);
    const std::size_t at_left = n_left[block];
    deal(from.rows, from.packed, flags, begin, end, at_left, total_left + begin - at_left, to);
  });
  return total_left;
}

std::size_t divide_in_place(const RowDivision& division, Row* rows, std::size_t n, bool are_all,
                            int n_threads) {
  std::vector<std::size_t> n_left((n + largest_block - 1) / largest_block);
  parallel_for(n_left.size(), threads_for(n, n_threads), [&](std::size_t block, int) {
    const std::size_t begin = block * largest_block;
    const auto first = static_cast<Row>(begin);
    n_left[block] = divide_block(division, rows + begin, std::min(largest_block, n - begin),
                                 are_all ? &first : nullptr);
  });
  if (n_left.size() > 1) join_sides(rows, n, n_left);
  return std::accumulate(n_left.begin(), n_left.end(), std::size_t{0});
}

}  // namespace spinney::boosting
