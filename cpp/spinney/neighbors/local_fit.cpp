#include "spinney/neighbors/local_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "spinney/common/check.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/exp.h"
#include "spinney/common/log.h"
#include "spinney/common/parallel.h"
#include "spinney/common/simd.h"
#include "spinney/neighbors/least_norm.h"

namespace spinney::neighbors {

using common::dispatch;
using common::Doubles8;
using common::InputError;
using common::load;
using common::parallel_for;
using common::store;
using common::sum_lanes;
using common::worthwhile_threads;

namespace {

// Sums run in eight lanes for every instruction set, so that all give the same bits.
constexpr std::size_t n_lanes = common::lane_count<Doubles8>;

constexpr std::size_t queries_per_block = 64;
// With a smaller pivot of the scaled matrix, the Cholesky factor is too inaccurate.
constexpr double min_pivot = 1e-6;
// Directions with a smaller singular value, relative to the largest, are not fitted.
constexpr double rank_tolerance = 1e-9;
// A term with a smaller range, relative to its largest value, is constant except for rounding.
constexpr double min_range = 1e-12;
// Bounds of Newton's method for log-odds: steps, absolute log-odds, and p (1 − p) of a row.
constexpr int max_steps = 25;
constexpr double max_odds = 30;
constexpr double min_variance = 1e-10;

template <double (*formula)(double)>
SPINNEY_INLINE void weigh_rows(const double* distances, std::size_t n, double bandwidth,
                               double* out) {
  for (std::size_t i = 0; i < n; ++i) {
    // Rows at the query have distance zero even if the bandwidth is zero.
    const double u = distances[i] > 0 ? distances[i] / bandwidth : 0.0;
    out[i] = formula(u);
  }
}

void weigh(SmoothingKernel kernel, const double* distances, std::size_t n, double h, double* out) {
  switch (kernel) {
    case SmoothingKernel::uniform:
      return dispatch<weigh_rows<kernel_formula::uniform>>(distances, n, h, out);
    case SmoothingKernel::triangular:
      return dispatch<weigh_rows<kernel_formula::triangular>>(distances, n, h, out);
    case SmoothingKernel::epanechnikov:
      return dispatch<weigh_rows<kernel_formula::epanechnikov>>(distances, n, h, out);
    case SmoothingKernel::biweight:
      return dispatch<weigh_rows<kernel_formula::biweight>>(distances, n, h, out);
    case SmoothingKernel::triweight:
      return dispatch<weigh_rows<kernel_formula::triweight>>(distances, n, h, out);
    case SmoothingKernel::tricube:
      return dispatch<weigh_rows<kernel_formula::tricube>>(distances, n, h, out);
    case SmoothingKernel::gaussian:
      return dispatch<weigh_rows<kernel_formula::gaussian>>(distances, n, h, out);
    case SmoothingKernel::cosine:
      return dispatch<weigh_rows<kernel_formula::cosine>>(distances, n, h, out);
    case SmoothingKernel::logistic:
      return dispatch<weigh_rows<kernel_formula::logistic>>(distances, n, h, out);
  }
}

// Subtracts the weighted means of columns and writes the lower triangle of their weighted products
// to `sums`. Padding rows, up to a multiple of n_lanes, have weight zero.
SPINNEY_INLINE void centre_and_multiply_kernel(double* columns, std::size_t n_columns,
                                               std::size_t stride, const double* weights,
                                               double total, double* means, double* weighted,
                                               double* sums) {
  for (std::size_t a = 0; a < n_columns; ++a) {
    double* const column = columns + a * stride;
    Doubles8 sum = {};
    for (std::size_t i = 0; i < stride; i += n_lanes) {
      sum += load<Doubles8>(weights + i) * load<Doubles8>(column + i);
    }
    const double mean = sum_lanes(sum) / total;
    means[a] = mean;
    for (std::size_t i = 0; i < stride; i += n_lanes) {
      const Doubles8 centred = load<Doubles8>(column + i) - mean;
      store(column + i, centred);
      store(weighted + i, centred * load<Doubles8>(weights + i));
    }
    for (std::size_t b = 0; b <= a; ++b) {
      const double* const other = columns + b * stride;
      Doubles8 product = {};
      for (std::size_t i = 0; i < stride; i += n_lanes) {
        product += load<Doubles8>(weighted + i) * load<Doubles8>(other + i);
      }
      sums[a * n_columns + b] = sum_lanes(product);
    }
  }
}

void centre_and_multiply(double* columns, std::size_t n_columns, std::size_t stride,
                         const double* weights, double total, double* means, double* weighted,
                         double* sums) {
  dispatch<centre_and_multiply_kernel>(columns, n_columns, stride, weights, total, means, weighted,
                                       sums);
}

// out_i = weight_i (1 / total − Σ_a column_a,i · factor_a)
SPINNEY_INLINE void smooth_kernel(const double* columns, std::size_t n_columns, std::size_t stride,
                                  const double* weights, double total, const double* factors,
                                  double* out) {
  const double mean_weight = 1.0 / total;
  for (std::size_t i = 0; i < stride; i += n_lanes) {
    Doubles8 sum = {};
    for (std::size_t a = 0; a < n_columns; ++a) {
      sum += load<Doubles8>(columns + a * stride + i) * factors[a];
    }
    store(out + i, load<Doubles8>(weights + i) * (mean_weight - sum));
  }
}

void smooth(const double* columns, std::size_t n_columns, std::size_t stride, const double* weights,
            double total, const double* factors, double* out) {
  dispatch<smooth_kernel>(columns, n_columns, stride, weights, total, factors, out);
}

// Fits the queries of one thread, with its memory.
class LocalFitter {
 public:
  LocalFitter(const LocalModel& model, const Neighborhoods& near, bool with_gradients,
              LocalFits& out)
      : model_(model), near_(near), with_gradients_(with_gradients), out_(out) {
    n_terms_ = count_terms(model.degree, model.n_features);
    scales_.resize(model.n_features);
    means_.resize(n_terms_);
    solved_.resize(n_terms_);
    penalties_.resize(n_terms_);
    active_.resize(n_terms_);
    sums_.resize(n_terms_ * n_terms_);
    diagonal_.resize(n_terms_);
    slopes_.resize(n_terms_);
    change_.resize(n_terms_);
  }

  void fit(std::size_t query) {
    gather(query);
    if (rows_.empty()) return;  // the results stay NaN
    if (n_terms_ > 0) {
      measure_terms(query);
      drop_constant_terms();
    }
    if (model_.logit) return predict_logit(query);
    if (n_terms_ > 0) {
      centre();
      factor_sums();
      apply(means_.data(), solved_.data());
    }
    smoother_.resize(stride_);
    smooth(columns_.data(), n_active_, stride_, weights_.data(), total_, solved_.data(),
           smoother_.data());
    predict(query);
    if (with_gradients_ && n_terms_ > 0) compute_gradients(query);
  }

 private:
  // Collects the rows with positive weight. Weights are divided by the largest.
  void gather(std::size_t query) {
    const auto begin = static_cast<std::size_t>(near_.starts[query]);
    const auto n = static_cast<std::size_t>(near_.starts[query + 1]) - begin;
    kernel_.resize(n);
    if (near_.kernel_values != nullptr) {
      std::copy_n(near_.kernel_values + begin, n, kernel_.begin());
    } else {
      weigh(model_.kernel, near_.distances + begin, n, near_.bandwidths[query], kernel_.data());
    }
    const std::int64_t left_out = near_.leave_out ? near_.own_rows[query] : -1;
    rows_.clear();
    weights_.clear();
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t row = near_.rows[begin + i];
      const double weight = kernel_[i] * model_.weights[row];
      if (!(weight > 0) || row == left_out) continue;
      rows_.push_back(static_cast<std::size_t>(row));
      weights_.push_back(weight);
      largest = std::max(largest, weight);
    }
    unit_ = largest;
    total_ = 0;
    for (double& weight : weights_) {
      weight /= largest;
      total_ += weight;
    }
    stride_ = (rows_.size() + n_lanes - 1) / n_lanes * n_lanes;
    weights_.resize(stride_, 0.0);
    n_active_ = 0;
  }

  void measure_terms(std::size_t query) {
    const std::size_t n_features = model_.n_features;
    columns_.resize(std::max(columns_.size(), n_terms_ * stride_));
    const double* const origin = near_.queries + query * n_features;
    std::fill(scales_.begin(), scales_.end(), 0.0);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double* const row = model_.x + rows_[i] * n_features;
      for (std::size_t f = 0; f < n_features; ++f) {
        const double difference = row[f] - origin[f];
        columns_[f * stride_ + i] = difference;
        scales_[f] = std::max(scales_[f], std::abs(difference));
      }
    }
    const double alpha = model_.alpha > 0 ? model_.alpha / unit_ : 0.0;
    for (std::size_t f = 0; f < n_features; ++f) {
      double* const column = columns_.data() + f * stride_;
      std::fill(column + rows_.size(), column + stride_, 0.0);
      if (scales_[f] == 0) scales_[f] = 1;
      for (std::size_t i = 0; i < rows_.size(); ++i) column[i] /= scales_[f];
      penalties_[f] = penalty(alpha, scales_[f]);
    }
    if (model_.degree < 2) return;
    std::size_t term = n_features;
    for (std::size_t a = 0; a < n_features; ++a) {
      const double* const first = columns_.data() + a * stride_;
      for (std::size_t b = 0; b <= a; ++b, ++term) {
        const double* const second = columns_.data() + b * stride_;
        double* const product = columns_.data() + term * stride_;
        for (std::size_t i = 0; i < stride_; ++i) product[i] = first[i] * second[i];
        penalties_[term] = penalty(penalty(alpha, scales_[a]), scales_[b]);
      }
    }
  }

  // The penalty refers to coefficients in the units of the features. The upper bound prevents
  // overflow; it already sets the coefficient to zero.
  static double penalty(double alpha, double scale) {
    return alpha > 0 ? std::min(alpha / scale / scale, 1e100) : 0.0;
  }

  // Removes constant terms; the other columns move up.
  void drop_constant_terms() {
    for (std::size_t term = 0; term < n_terms_; ++term) {
      const double* const column = columns_.data() + term * stride_;
      double low = column[0], high = column[0];
      for (std::size_t i = 1; i < rows_.size(); ++i) {
        low = std::min(low, column[i]);
        high = std::max(high, column[i]);
      }
      if (!(high - low > min_range * std::max(std::abs(low), std::abs(high)))) continue;
      if (n_active_ != term) {
        std::copy_n(column, stride_, columns_.data() + n_active_ * stride_);
      }
      active_[n_active_++] = term;
    }
  }

  void centre() {
    weighted_.resize(stride_);
    centre_and_multiply(columns_.data(), n_active_, stride_, weights_.data(), total_, means_.data(),
                        weighted_.data(), sums_.data());
    for (std::size_t a = 0; a < n_active_; ++a) {
      sums_[a * n_active_ + a] += penalties_[active_[a]];
    }
  }

  // Afterwards, apply() multiplies a vector by (ZᵀWZ + Λ)⁺.
  void factor_sums() {
    const bool is_underdetermined = model_.alpha == 0 && rows_.size() <= n_active_;
    by_cholesky_ = !is_underdetermined && factor();
    if (!by_cholesky_) factor_by_singular_values();
  }

  bool factor() {
    const std::size_t n = n_active_;
    for (std::size_t a = 0; a < n; ++a) {
      const double square = sums_[a * n + a];
      if (!(square > 0)) return false;
      diagonal_[a] = 1 / std::sqrt(square);
    }
    for (std::size_t a = 0; a < n; ++a) {
      double* const row = sums_.data() + a * n;
      for (std::size_t b = 0; b < a; ++b) {
        const double* const above = sums_.data() + b * n;
        double rest = row[b] * diagonal_[a] * diagonal_[b];
        for (std::size_t k = 0; k < b; ++k) rest -= row[k] * above[k];
        row[b] = rest / above[b];
      }
      double pivot = 1;
      for (std::size_t k = 0; k < a; ++k) pivot -= row[k] * row[k];
      if (!(pivot > min_pivot)) return false;
      row[a] = std::sqrt(pivot);
    }
    return true;
  }

  void factor_by_singular_values() {
    const std::size_t n_rows = rows_.size(), n = n_active_;
    const bool penalised = model_.alpha > 0;
    const std::size_t length = n_rows + (penalised ? n : 0);
    matrix_.assign(length * n, 0.0);
    for (std::size_t a = 0; a < n; ++a) {
      double* const to = matrix_.data() + a * length;
      const double* const column = columns_.data() + a * stride_;
      for (std::size_t i = 0; i < n_rows; ++i) to[i] = std::sqrt(weights_[i]) * column[i];
      if (penalised) to[n_rows + a] = std::sqrt(penalties_[active_[a]]);
    }
    least_norm_.factor(matrix_.data(), length, n, length, rank_tolerance);
  }

  void apply(const double* vector, double* out) {
    if (!by_cholesky_) return least_norm_.apply(vector, out);
    const std::size_t n = n_active_;
    for (std::size_t a = 0; a < n; ++a) {
      double rest = vector[a] * diagonal_[a];
      for (std::size_t k = 0; k < a; ++k) rest -= sums_[a * n + k] * out[k];
      out[a] = rest / sums_[a * n + a];
    }
    for (std::size_t a = n; a-- > 0;) {
      double rest = out[a];
      for (std::size_t k = a + 1; k < n; ++k) rest -= sums_[k * n + a] * out[k];
      out[a] = rest / sums_[a * n + a];
    }
    for (std::size_t a = 0; a < n; ++a) out[a] *= diagonal_[a];
  }

  // Targets are summed as differences from the first one, so that constant targets are exact.
  void predict(std::size_t query) {
    const std::size_t n_outputs = model_.n_outputs;
    const double* const base = model_.y + rows_[0] * n_outputs;
    double* const values = out_.values.data() + query * n_outputs;
    std::fill_n(values, n_outputs, 0.0);
    double noise = 0, leverage = 0;
    const std::int64_t own = near_.own_rows == nullptr ? -1 : near_.own_rows[query];
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double part = smoother_[i];
      const double* const target = model_.y + rows_[i] * n_outputs;
      for (std::size_t o = 0; o < n_outputs; ++o) values[o] += part * (target[o] - base[o]);
      noise += part * part / model_.weights[rows_[i]];
      if (static_cast<std::int64_t>(rows_[i]) == own) leverage += part;
    }
    for (std::size_t o = 0; o < n_outputs; ++o) values[o] += base[o];
    out_.noise[query] = noise;
    if (own >= 0) out_.leverages[query] = leverage;
  }

  void compute_gradients(std::size_t query) {
    double* const gradients = out_.gradients.data() + query * model_.n_outputs * model_.n_features;
    residuals_.resize(rows_.size());
    for (std::size_t o = 0; o < model_.n_outputs; ++o) {
      const double base = target(0, o);
      for (std::size_t i = 0; i < rows_.size(); ++i) residuals_[i] = target(i, o) - base;
      fit_slopes();
      for (std::size_t a = 0; a < n_active_; ++a) {
        const std::size_t term = active_[a];
        if (term >= model_.n_features) break;
        gradients[o * model_.n_features + term] = slopes_[a] / scales_[term];
      }
    }
  }

  double target(std::size_t i, std::size_t output) const {
    return model_.y[rows_[i] * model_.n_outputs + output];
  }

  // Fits slopes_ to residuals_ and subtracts the fitted values. Returns the mean of the residuals.
  double fit_slopes() {
    double mean = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) mean += weights_[i] * residuals_[i];
    mean /= total_;
    for (double& residual : residuals_) residual -= mean;
    std::fill_n(slopes_.begin(), n_active_, 0.0);
    // The second iteration corrects rounding errors of the first (iterative refinement).
    for (int round = 0; round < 2; ++round) {
      for (std::size_t a = 0; a < n_active_; ++a) {
        const double* const column = columns_.data() + a * stride_;
        double sum = -penalties_[active_[a]] * slopes_[a];
        for (std::size_t i = 0; i < rows_.size(); ++i) {
          sum += weights_[i] * column[i] * residuals_[i];
        }
        change_[a] = sum;
      }
      apply(change_.data(), change_.data());
      for (std::size_t a = 0; a < n_active_; ++a) {
        slopes_[a] += change_[a];
        const double* const column = columns_.data() + a * stride_;
        for (std::size_t i = 0; i < rows_.size(); ++i) residuals_[i] -= change_[a] * column[i];
      }
    }
    return mean;
  }

  // One-vs-rest; for two classes only the second is fitted.
  void predict_logit(std::size_t query) {
    const std::size_t n_outputs = model_.n_outputs;
    double* const values = out_.values.data() + query * n_outputs;
    out_.noise[query] = 0;
    kernel_.assign(weights_.begin(), weights_.end());
    terms_.assign(columns_.begin(),
                  columns_.begin() + static_cast<std::ptrdiff_t>(n_active_ * stride_));
    for (std::size_t o = n_outputs == 2 ? 1 : 0; o < n_outputs; ++o) values[o] = fit_logit(o);
    if (n_outputs == 2) values[0] = 1 - values[1];
  }

  // The probability at the query.
  double fit_logit(std::size_t output) {
    const std::size_t n = rows_.size();
    double mean = 0, total_weight = 0;
    bool mixed = false;
    for (std::size_t i = 0; i < n; ++i) {
      mean += kernel_[i] * target(i, output);
      total_weight += kernel_[i];
      mixed = mixed || target(i, output) != target(0, output);
    }
    mean /= total_weight;
    // If all targets are equal, the probability is that target. Without terms it is the mean.
    if (!mixed) return target(0, output);
    if (n_active_ == 0) return mean;
    double intercept = common::log(mean / (1 - mean));
    odds_.assign(n, intercept);
    residuals_.resize(n);
    coefficients_.assign(n_active_, 0.0);
    double loss = logit_loss(output, coefficients_);
    for (int step = 0; step < max_steps; ++step) {
      total_ = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double p = 1 / (1 + common::exp(-odds_[i]));
        const double spread = std::max(p * (1 - p), min_variance);
        weights_[i] = kernel_[i] * spread;
        total_ += weights_[i];
        residuals_[i] = odds_[i] + (target(i, output) - p) / spread;
      }
      std::copy(terms_.begin(), terms_.end(), columns_.begin());
      centre();
      factor_sums();
      double target_intercept = fit_slopes();
      for (std::size_t a = 0; a < n_active_; ++a) target_intercept -= means_[a] * slopes_[a];
      // Halve the step until the loss does not increase.
      const double from = intercept;
      start_.assign(coefficients_.begin(), coefficients_.end());
      double step_size = 1, reached = loss;
      for (int halving = 0; halving < 30; ++halving, step_size /= 2) {
        intercept = from + step_size * (target_intercept - from);
        for (std::size_t a = 0; a < n_active_; ++a) {
          coefficients_[a] = start_[a] + step_size * (slopes_[a] - start_[a]);
        }
        find_odds(intercept);
        reached = logit_loss(output, coefficients_);
        if (reached <= loss) break;
      }
      if (!(reached <= loss)) {  // no step reduces the loss: converged
        intercept = from;
        break;
      }
      const double gain = loss - reached;
      loss = reached;
      if (gain <= 1e-12 * total_weight) break;
    }
    return 1 / (1 + common::exp(-std::clamp(intercept, -max_odds, max_odds)));
  }

  void find_odds(double intercept) {
    std::fill(odds_.begin(), odds_.end(), intercept);
    for (std::size_t a = 0; a < n_active_; ++a) {
      const double* const term = terms_.data() + a * stride_;
      for (std::size_t i = 0; i < odds_.size(); ++i) odds_[i] += coefficients_[a] * term[i];
    }
    // Without a bound, log-odds diverge if the classes are separable.
    for (double& odds : odds_) odds = std::clamp(odds, -max_odds, max_odds);
  }

  double logit_loss(std::size_t output, const std::vector<double>& coefficients) const {
    double sum = 0;
    for (std::size_t i = 0; i < odds_.size(); ++i) {
      const double odds = odds_[i], size = std::abs(odds);
      const double softplus = std::max(odds, 0.0) + common::log(1 + common::exp(-size));
      sum += kernel_[i] * (softplus - target(i, output) * odds);
    }
    for (std::size_t a = 0; a < n_active_; ++a) {
      sum += penalties_[active_[a]] / 2 * coefficients[a] * coefficients[a];
    }
    return sum;
  }

  const LocalModel& model_;
  const Neighborhoods& near_;
  bool with_gradients_;
  LocalFits& out_;
  std::size_t n_terms_ = 0;
  std::size_t n_active_ = 0;  // terms that are not constant
  std::vector<std::size_t> active_;
  std::vector<std::size_t> rows_;
  std::size_t stride_ = 0;  // number of rows, rounded up to whole lanes
  double unit_ = 0, total_ = 0;
  std::vector<double> kernel_, weights_, scales_, columns_, weighted_, means_, penalties_, sums_,
      diagonal_, solved_, smoother_, matrix_, residuals_, slopes_, change_;
  // For log-odds: the terms before centring. kernel_ then has the weights of the rows.
  std::vector<double> terms_, odds_, coefficients_, start_;
  bool by_cholesky_ = true;
  LeastNorm least_norm_;
};

void check(const LocalModel& model, const Neighborhoods& near) {
  if (model.degree < 0 || model.degree > 2) throw InputError("local: degree must be 0, 1 or 2");
  if (near.starts[0] != 0) throw InputError("local: starts must begin with 0");
  for (std::size_t q = 0; q < near.n_queries; ++q) {
    if (near.starts[q + 1] < near.starts[q]) throw InputError("local: starts must be ascending");
  }
  if (static_cast<std::size_t>(near.starts[near.n_queries]) != near.n_entries) {
    throw InputError("local: starts must end with the number of rows");
  }
  const bool inside = std::all_of(near.rows, near.rows + near.n_entries, [&](std::int64_t row) {
    return static_cast<std::uint64_t>(row) < model.n_rows;
  });
  if (!inside) throw InputError("local: a row index is out of range");
  if (near.leave_out && near.own_rows == nullptr)
    throw InputError("local: leave_out requires own_rows");
}

}  // namespace

std::size_t count_terms(int degree, std::size_t n_features) {
  if (degree == 0) return 0;
  return degree == 1 ? n_features : n_features + n_features * (n_features + 1) / 2;
}

LocalFits fit_local(const LocalModel& model, const Neighborhoods& near, bool with_gradients,
                    int n_threads) {
  check(model, near);
  LocalFits out;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  out.values.assign(near.n_queries * model.n_outputs, nan);
  out.noise.assign(near.n_queries, nan);
  if (near.own_rows != nullptr) out.leverages.assign(near.n_queries, 0.0);
  if (with_gradients) {
    out.gradients.assign(near.n_queries * model.n_outputs * model.n_features, 0.0);
  }
  const auto n_terms = static_cast<double>(count_terms(model.degree, model.n_features));
  const double work = static_cast<double>(near.n_entries) * (10 + n_terms * (2 + n_terms / 4));
  const int n_workers = worthwhile_threads(work, n_threads);
  std::vector<LocalFitter> fitters;
  fitters.reserve(static_cast<std::size_t>(n_workers));
  for (int worker = 0; worker < n_workers; ++worker) {
    fitters.emplace_back(model, near, with_gradients, out);
  }
  const std::size_t n_blocks = (near.n_queries + queries_per_block - 1) / queries_per_block;
  parallel_for(n_blocks, n_workers, [&](std::size_t block, int worker) {
    const std::size_t first = block * queries_per_block;
    const std::size_t last = std::min(near.n_queries, first + queries_per_block);
    LocalFitter& fitter = fitters[static_cast<std::size_t>(worker)];
    for (std::size_t query = first; query < last; ++query) fitter.fit(query);
  });
  return out;
}

}  // namespace spinney::neighbors
