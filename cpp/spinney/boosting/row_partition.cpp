#include "spinney/boosting/row_partition.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "spinney/common/compiler.h"
#include "spinney/common/parallel.h"

namespace spinney::boosting {

using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

constexpr std::size_t ahead = 64;  // rows whose codes are prefetched
constexpr std::size_t largest_block = 16'384;

int threads_for(std::size_t n, int n_threads) {
  return worthwhile_threads(4.0 * static_cast<double>(n), n_threads, true);
}

// flags[i] = whether rows[i] (null: row i) goes left; returns the number of left rows. The pointers
// are copied to local variables because a store of bytes may alias anything.
std::size_t mark(const CodeSides& sides, const Row* rows, std::size_t begin, std::size_t end,
                 std::uint8_t* __restrict flags) {
  const std::uint8_t* const codes = sides.codes;
  const std::uint8_t* const left = sides.left.data();
  const std::size_t stride = sides.stride;
  std::size_t count = 0;
  if (rows == nullptr) {
    for (std::size_t i = begin; i < end; ++i) count += flags[i] = left[codes[i]];
    return count;
  }
  std::size_t i = begin;
  if (sides.prefetch) {
    for (; i + ahead < end; ++i) {
      common::prefetch_second_level(codes + rows[i + ahead] * stride);
      count += flags[i] = left[codes[rows[i] * stride]];
    }
  }
  for (; i < end; ++i) count += flags[i] = left[codes[rows[i] * stride]];
  return count;
}

// Writes rows with a flag from at_left on, the others from at_right on.
void deal(const Row* rows, const PackedSum* packed, const std::uint8_t* flags, std::size_t begin,
          std::size_t end, std::size_t at_left, std::size_t at_right, const RowsAndSums& to) {
  Row* __restrict const to_rows = to.rows;
  PackedSum* __restrict const to_packed = to.packed;
  const auto put = [&](std::size_t i, Row row, bool with_sum) {
    const std::size_t flag = flags[i];
    // Arithmetic instead of a branch, which would be mispredicted half of the time.
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

// Partitions n rows in place, or writes rows first, first + 1, …; returns the number of left rows.
// Without branches: every row is written to both sides, and only the count of its side advances.
std::size_t partition_block(const CodeSides& sides, Row* rows, std::size_t n, const Row* first) {
  const std::uint8_t* const codes = sides.codes;
  const std::uint8_t* const left = sides.left.data();
  const std::size_t stride = sides.stride;
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
    common::prefetch_second_level(codes + rows[i + ahead] * stride);
    put(rows[i]);
  }
  for (; i < n; ++i) put(rows[i]);
  std::copy_n(to_right.data(), n_right, rows + n_left);
  return n_left;
}

// Moves all left rows to the front, given blocks that have their left rows first: swaps right rows
// of the first blocks with left rows of the last blocks, a range at a time.
void join_sides(Row* rows, std::size_t n, const std::vector<std::size_t>& n_left) {
  std::size_t front = 0;  // first and last block that are not finished
  std::size_t back = n_left.size() - 1;
  std::size_t low = n_left[front];                         // first right row of the front block
  std::size_t high = back * largest_block + n_left[back];  // end of the left rows of the back block
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

std::size_t partition_rows(const CodeSides& sides, const RowsAndSums& from, std::size_t n,
                           int n_threads, std::uint8_t* flags, const RowsAndSums& to) {
  const int threads = threads_for(n, n_threads);
  const std::size_t block_rows =
      std::clamp<std::size_t>(n / static_cast<std::size_t>(threads) + 1, 1024, largest_block);
  const std::size_t n_blocks = (n + block_rows - 1) / block_rows;
  std::vector<std::size_t> n_left(n_blocks + 1);
  parallel_for(n_blocks, threads, [&](std::size_t block, int) {
    const std::size_t begin = block * block_rows;
    const std::size_t end = std::min(n, begin + block_rows);
    n_left[block + 1] = mark(sides, from.rows, begin, end, flags);
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

std::size_t partition_in_place(const CodeSides& sides, Row* rows, std::size_t n, bool are_all,
                               int n_threads) {
  std::vector<std::size_t> n_left((n + largest_block - 1) / largest_block);
  parallel_for(n_left.size(), threads_for(n, n_threads), [&](std::size_t block, int) {
    const std::size_t begin = block * largest_block;
    const auto first = static_cast<Row>(begin);
    n_left[block] = partition_block(sides, rows + begin, std::min(largest_block, n - begin),
                                    are_all ? &first : nullptr);
  });
  if (n_left.size() > 1) join_sides(rows, n, n_left);
  return std::accumulate(n_left.begin(), n_left.end(), std::size_t{0});
}

}  // namespace spinney::boosting
