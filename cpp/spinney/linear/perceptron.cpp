#include "spinney/linear/perceptron.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"
#include "spinney/common/simd.h"

namespace spinney::linear {

using common::dispatch;
using common::Doubles8;
using common::load;
using common::parallel_for;

namespace {

constexpr std::size_t rows_ahead = 4;
constexpr std::size_t max_prefetched = 1024;  // bytes of a row that are prefetched

SPINNEY_INLINE Doubles8 load_values(const double* from) { return load<Doubles8>(from); }
SPINNEY_INLINE Doubles8 load_values(const float* from) {
  return common::convert<Doubles8>(load<common::Floats8>(from));
}

// The sum runs in eight lanes for every instruction set, so that all give the same bits.
template <class Value>
SPINNEY_INLINE double dot_kernel(const Value* row, const double* coef, std::size_t n) {
  constexpr std::size_t n_lanes = common::lane_count<Doubles8>;
  Doubles8 sum = {};
  std::size_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) sum += load_values(row + i) * load_values(coef + i);
  double rest = 0;
  for (; i < n; ++i) rest += static_cast<double>(row[i]) * coef[i];
  return common::sum_lanes(sum) + rest;
}

template <class Value>
double score(const PerceptronRows<Value>& rows, std::size_t row, const Hyperplane& plane) {
  if (rows.starts == nullptr) {
    const double* const coef = plane.coef.data();
    return dispatch<dot_kernel<Value>>(rows.values + row * rows.n_features, coef, rows.n_features) +
           plane.intercept;
  }
  double sum = 0;
  for (auto k = rows.starts[row]; k < rows.starts[row + 1]; ++k) {
    sum +=
        static_cast<double>(rows.values[k]) * plane.coef[static_cast<std::size_t>(rows.columns[k])];
  }
  return sum + plane.intercept;
}

template <class Value>
void add(const PerceptronRows<Value>& rows, std::size_t row, double step, bool intercept,
         Hyperplane& plane) {
  if (rows.starts == nullptr) {
    const Value* const values = rows.values + row * rows.n_features;
    for (std::size_t i = 0; i < rows.n_features; ++i) {
      plane.coef[i] += step * static_cast<double>(values[i]);
    }
  } else {
    for (auto k = rows.starts[row]; k < rows.starts[row + 1]; ++k) {
      plane.coef[static_cast<std::size_t>(rows.columns[k])] +=
          step * static_cast<double>(rows.values[k]);
    }
  }
  if (intercept) plane.intercept += step;
}

// The row order of scikit-learn, so that fits are equal: Fisher–Yates shuffle with Marsaglia's
// 32-bit xorshift generator and the same seed in each pass.
void shuffle(std::vector<std::uint32_t>& order, std::uint32_t seed) {
  if (seed == 0) seed = 1;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    std::swap(order[i], order[i + (seed & 0x7fffffffU) % (order.size() - i)]);
  }
}

bool is_finite(const Hyperplane& plane) {
  double sum = plane.intercept * 0;
  for (const double c : plane.coef) sum += c * 0;
  return sum == 0;
}

template <class Value>
class PerceptronFit {
 public:
  PerceptronFit(const PerceptronRows<Value>& rows, const PerceptronOptions& options,
                PerceptronProblem& problem, common::Watch& watch)
      : rows_(rows), options_(options), problem_(problem), watch_(watch), order_(rows.n_rows) {
    std::iota(order_.begin(), order_.end(), 0U);
    work_ = 5 + rows.n_features / 4;
    if (options.variant == PerceptronVariant::average) early_steps_.coef.resize(rows.n_features);
  }

  void fit() {
    double best_loss = std::numeric_limits<double>::infinity();
    int n_without_gain = 0;
    auto& plane = problem_.plane;
    while (problem_.n_passes < options_.max_passes) {
      if (options_.shuffle) shuffle(order_, problem_.seed);
      const auto mistakes_before = problem_.n_mistakes;
      const double loss = pass();
      ++problem_.n_passes;
      if (!is_finite(plane)) {
        problem_.overflow = true;
        return;
      }
      if (options_.variant == PerceptronVariant::pocket) count_errors();
      if (problem_.n_mistakes == mistakes_before) break;
      n_without_gain = loss > best_loss - options_.tolerance ? n_without_gain + 1 : 0;
      best_loss = std::min(best_loss, loss);
      if (n_without_gain >= options_.patience) break;
    }
    if (options_.variant == PerceptronVariant::last) problem_.result = plane;
    if (options_.variant == PerceptronVariant::average) average();
  }

 private:
  // Shuffled rows are not contiguous, so they are prefetched.
  void prefetch_row(std::size_t row) const {
    if (rows_.starts != nullptr) return;
    const auto* const from = reinterpret_cast<const char*>(rows_.values + row * rows_.n_features);
    const std::size_t n_bytes = std::min(rows_.n_features * sizeof(Value), max_prefetched);
    for (std::size_t i = 0; i < n_bytes; i += 64) common::prefetch(from + i);
  }

  // Visits every row once and returns the mean loss, max(0, −y f(x)).
  double pass() {
    double loss = 0;
    auto& plane = problem_.plane;
    for (std::size_t k = 0; k < order_.size(); ++k) {
      const std::size_t row = order_[k];
      watch_.poll(work_);
      if (k + rows_ahead < order_.size()) prefetch_row(order_[k + rows_ahead]);
      const double step = problem_.steps[row];
      if (step == 0) continue;
      ++n_visited_;
      const double signed_score = std::copysign(1.0, step) * score(rows_, row, plane);
      if (signed_score > 0) {
        if (options_.variant == PerceptronVariant::pocket && ++run_length_ > longest_run_) {
          longest_run_ = run_length_;
          if (!counted_) count_errors();
        }
        continue;
      }
      loss -= signed_score;
      ++problem_.n_mistakes;
      add(rows_, row, step, options_.fit_intercept, plane);
      run_length_ = 0;
      counted_ = false;
      if (options_.variant == PerceptronVariant::average) {
        add(rows_, row, step * static_cast<double>(n_visited_ - 1), options_.fit_intercept,
            early_steps_);
      }
    }
    return loss / static_cast<double>(rows_.n_rows);
  }

  // The mean of the hyperplanes after each visited row. The step of visit t is missing from the
  // first t − 1 hyperplanes.
  void average() {
    problem_.result = problem_.plane;
    if (n_visited_ == 0) return;
    const auto factor = 1.0 / static_cast<double>(n_visited_);
    for (std::size_t i = 0; i < rows_.n_features; ++i) {
      problem_.result.coef[i] -= factor * early_steps_.coef[i];
    }
    problem_.result.intercept -= factor * early_steps_.intercept;
  }

  void count_errors() {
    if (counted_) return;
    counted_ = true;
    double errors = 0;
    for (std::size_t row = 0; row < rows_.n_rows && errors < min_errors_; ++row) {
      watch_.poll(work_);
      const double step = problem_.steps[row];
      if (step == 0) continue;
      if (std::copysign(1.0, step) * score(rows_, row, problem_.plane) <= 0) {
        errors += std::fabs(step);
      }
    }
    if (errors < min_errors_) {
      min_errors_ = errors;
      problem_.result = problem_.plane;
    }
  }

  const PerceptronRows<Value>& rows_;
  const PerceptronOptions& options_;
  PerceptronProblem& problem_;
  common::Watch& watch_;
  std::vector<std::uint32_t> order_;
  std::uint64_t work_;
  std::int64_t n_visited_ = 0;
  Hyperplane early_steps_;  // each step times the number of earlier visits
  std::int64_t run_length_ = 0, longest_run_ = 0;
  bool counted_ = false;  // whether the errors of the present hyperplane are counted
  double min_errors_ = std::numeric_limits<double>::infinity();
};

}  // namespace

template <class Value>
void run_perceptrons(const PerceptronRows<Value>& rows, const PerceptronOptions& options,
                     std::vector<PerceptronProblem>& problems, int n_threads,
                     common::Watch& watch) {
  parallel_for(problems.size(), n_threads, [&](std::size_t i, int) {
    PerceptronFit<Value>(rows, options, problems[i], watch).fit();
  });
}

template void run_perceptrons(const PerceptronRows<float>&, const PerceptronOptions&,
                              std::vector<PerceptronProblem>&, int, common::Watch&);
template void run_perceptrons(const PerceptronRows<double>&, const PerceptronOptions&,
                              std::vector<PerceptronProblem>&, int, common::Watch&);

}  // namespace spinney::linear
