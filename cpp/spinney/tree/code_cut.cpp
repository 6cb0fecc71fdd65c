#include "spinney/tree/code_cut.h"

#include <algorithm>

#include "spinney/common/dispatch.h"

namespace spinney::tree {

namespace {

constexpr std::size_t n_lanes = 8;
constexpr double no_score = -std::numeric_limits<double>::infinity();

// A range of codes, with arrays for the cuts after each of them.
struct Chunk {
  std::size_t size;  // a multiple of n_lanes; padding cuts have no weight on the right
  double* left_of;   // [class * size + code]
  double* left;
  double* right;
  double* left_squares;
  double* right_squares;
  double* scores;
};

Chunk make_chunk(double* room, std::size_t size, std::size_t n_classes) {
  double* const after = room + n_classes * size;
  return {size, room, after, after + size, after + 2 * size, after + 3 * size, after + 4 * size};
}

// Prefix sums by code. Integer sums are exact: a code without rows changes nothing, and exactly
// zero remains after the last code.
SPINNEY_INLINE void sum_prefixes(const CodeCutTask& task, std::size_t first, std::size_t n,
                                 std::int64_t* running, const Chunk& chunk) {
  const std::int64_t* sums = task.sums + first * task.n_classes;
  if (task.n_classes == 2) {
    std::int64_t zeros = running[0];
    std::int64_t ones = running[1];
    double* const left_zeros = chunk.left_of;
    double* const left_ones = chunk.left_of + chunk.size;
    for (std::size_t c = 0; c < n; ++c) {
      zeros += sums[2 * c];
      ones += sums[2 * c + 1];
      left_zeros[c] = static_cast<double>(zeros);
      left_ones[c] = static_cast<double>(ones);
    }
    running[0] = zeros;
    running[1] = ones;
    return;
  }
  for (std::size_t k = 0; k < task.n_classes; ++k) {
    std::int64_t sum = running[k];
    double* const left = chunk.left_of + k * chunk.size;
    for (std::size_t c = 0; c < n; ++c) {
      sum += sums[c * task.n_classes + k];
      left[c] = static_cast<double>(sum);
    }
    running[k] = sum;
  }
}

SPINNEY_INLINE double score_of(double left, double right, double left_squares, double right_squares,
                               const CodeCutTask& task) {
  const double score = (left_squares * right + right_squares * left) / (left * right);
  const double lighter = std::min(left, right);
  return lighter > task.least && lighter >= task.min_weight ? score : no_score;
}

SPINNEY_INLINE void score_two_classes(const CodeCutTask& task, const Chunk& chunk, double* best) {
  const auto all_zeros = static_cast<double>(task.totals[0]);
  const auto all_ones = static_cast<double>(task.totals[1]);
  const double* const left_zeros = chunk.left_of;
  const double* const left_ones = chunk.left_of + chunk.size;
  for (std::size_t c = 0; c < chunk.size; c += n_lanes) {
    for (std::size_t lane = 0; lane < n_lanes; ++lane) {
      const double zeros = left_zeros[c + lane];
      const double ones = left_ones[c + lane];
      const double other_zeros = all_zeros - zeros;
      const double other_ones = all_ones - ones;
      const double score =
          score_of(zeros + ones, other_zeros + other_ones, zeros * zeros + ones * ones,
                   other_zeros * other_zeros + other_ones * other_ones, task);
      chunk.scores[c + lane] = score;
      best[lane] = score > best[lane] ? score : best[lane];
    }
  }
}

SPINNEY_INLINE void score_classes(const CodeCutTask& task, const Chunk& chunk, double* best) {
  std::fill(chunk.left, chunk.left + 4 * chunk.size, 0.0);
  for (std::size_t k = 0; k < task.n_classes; ++k) {
    const auto all = static_cast<double>(task.totals[k]);
    const double* const of_class = chunk.left_of + k * chunk.size;
    for (std::size_t c = 0; c < chunk.size; ++c) {
      const double here = of_class[c];
      const double other = all - here;
      chunk.left[c] += here;
      chunk.right[c] += other;
      chunk.left_squares[c] += here * here;
      chunk.right_squares[c] += other * other;
    }
  }
  for (std::size_t c = 0; c < chunk.size; c += n_lanes) {
    for (std::size_t lane = 0; lane < n_lanes; ++lane) {
      const std::size_t at = c + lane;
      const double score = score_of(chunk.left[at], chunk.right[at], chunk.left_squares[at],
                                    chunk.right_squares[at], task);
      chunk.scores[at] = score;
      best[lane] = score > best[lane] ? score : best[lane];
    }
  }
}

// Removes the scores of cuts with too few rows on a side; returns the best remaining score.
double drop_small_sides(const CodeCutTask& task, std::size_t first, std::size_t n,
                        common::Row& n_left, const Chunk& chunk) {
  double best = no_score;
  for (std::size_t c = 0; c < n; ++c) {
    n_left += task.counts[first + c];
    if (n_left < task.min_rows || task.n_rows - n_left < task.min_rows) chunk.scores[c] = no_score;
    best = std::max(best, chunk.scores[c]);
  }
  return best;
}

}  // namespace

CodeCut best_code_cut(const CodeCutTask& task, std::vector<double>& scratch) {
  // The numbers of a chunk fit the first-level cache.
  constexpr std::size_t chunk_numbers = 2048;
  const std::size_t n_classes = task.n_classes;
  std::size_t size = std::max<std::size_t>(chunk_numbers / (n_classes + 5), n_lanes);
  size = std::min(size, task.n_codes) + n_lanes - 1;
  size -= size % n_lanes;
  scratch.resize(std::max(scratch.size(), (n_classes + 5) * size));
  const Chunk chunk = make_chunk(scratch.data(), size, n_classes);
  std::vector<std::int64_t> running(n_classes);
  if (task.left != nullptr) std::copy(task.left, task.left + n_classes, running.begin());
  common::Row n_left = task.n_left;
  CodeCut cut;
  for (std::size_t first = 0; first < task.n_codes; first += size) {
    const std::size_t n = std::min(size, task.n_codes - first);
    sum_prefixes(task, first, n, running.data(), chunk);
    for (std::size_t k = 0; k < n_classes && n < size; ++k) {
      std::fill(chunk.left_of + k * size + n, chunk.left_of + (k + 1) * size,
                static_cast<double>(task.totals[k]));
    }
    double lanes[n_lanes];
    std::fill(lanes, lanes + n_lanes, no_score);
    if (n_classes == 2) {
      common::dispatch<score_two_classes>(task, chunk, lanes);
    } else {
      common::dispatch<score_classes>(task, chunk, lanes);
    }
    double best = *std::max_element(lanes, lanes + n_lanes);
    if (task.counts != nullptr) best = drop_small_sides(task, first, n, n_left, chunk);
    if (!(best > cut.score)) continue;
    cut.score = best;
    cut.code = first + static_cast<std::size_t>(std::find(chunk.scores, chunk.scores + n, best) -
                                                chunk.scores);
  }
  return cut;
}

}  // namespace spinney::tree
