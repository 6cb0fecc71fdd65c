#include "spinney/explain/leaf_game.h"

#include <algorithm>
#include <bit>

#include "spinney/common/dispatch.h"

namespace spinney::explain {

namespace {

SPINNEY_INLINE void add_subsets(double* values, std::size_t m) {
  const std::size_t n = std::size_t{1} << m;
  for (std::size_t half = 1; half < n; half *= 2) {
    for (std::size_t begin = 0; begin < n; begin += 2 * half) {
      for (std::size_t i = begin; i < begin + half; ++i) values[i + half] += values[i];
    }
  }
}

}  // namespace

double beta(std::size_t a, std::size_t b) {
  // Products of factors near one another: nothing overflows.
  double out = 1.0 / static_cast<double>(a + b + 1);
  const std::size_t k = std::min(a, b);
  const std::size_t n = a + b;
  for (std::size_t i = 1; i <= k; ++i) {
    out *= static_cast<double>(i) / static_cast<double>(n - k + i);
  }
  return out;
}

void multiply_shares(const double* shares, std::size_t m, std::vector<double>& out) {
  out.resize(std::size_t{1} << m);
  out[0] = 1;
  for (std::size_t j = 0; j < m; ++j) {
    const std::size_t half = std::size_t{1} << j;
    for (std::size_t i = 0; i < half; ++i) out[i + half] = out[i] * shares[j];
  }
}

void sum_supersets(std::size_t m, std::vector<double>& values) {
  const std::size_t n = std::size_t{1} << m;
  for (std::size_t half = 1; half < n; half *= 2) {
    for (std::size_t begin = 0; begin < n; begin += 2 * half) {
      for (std::size_t i = begin; i < begin + half; ++i) values[i] += values[i + half];
    }
  }
}

void LeafGame::set(std::size_t m, const std::vector<double>& share) {
  m_ = m;
  const std::size_t n = std::size_t{1} << m;
  worth_.resize(n);
  for (std::size_t set = 0; set < n; ++set) worth_[set] = share[n - 1 - set];
}

void LeafGame::sum_subsets(std::size_t order, std::size_t shift, std::vector<double>& out) const {
  const std::size_t n = std::size_t{1} << m_;
  const std::size_t others = m_ - order;
  std::vector<double> weight(m_ + 1, 0.0);
  for (std::size_t size = shift; size - shift <= others && size <= m_; ++size) {
    weight[size] = beta(size - shift, others - (size - shift));
  }
  out.resize(n);
  for (std::size_t set = 0; set < n; ++set) {
    out[set] = weight[static_cast<std::size_t>(std::popcount(set))] * worth_[set];
  }
  common::dispatch<add_subsets>(out.data(), m_);
}

void LeafGame::values(std::vector<double>& out) {
  const std::size_t n = std::size_t{1} << m_;
  out.resize(n * m_);
  if (m_ == 0) return;
  sum_subsets(1, 0, none_);  // coalitions without the feature
  sum_subsets(1, 1, one_);   // coalitions that are one with it
  for (std::size_t a = 0; a < n; ++a) {
    double* const to = out.data() + a * m_;
    for (std::size_t i = 0; i < m_; ++i) {
      const std::size_t bit = std::size_t{1} << i;
      to[i] = (a & bit) != 0 ? (one_[a] - one_[a ^ bit]) - none_[a ^ bit] : -none_[a];
    }
  }
}

void LeafGame::interactions(std::vector<double>& out) {
  const std::size_t n = std::size_t{1} << m_;
  const std::size_t n_pairs = m_ * (m_ - 1) / 2;
  out.resize(m_ < 2 ? 0 : n * n_pairs);
  if (m_ < 2) return;
  sum_subsets(2, 0, none_);
  sum_subsets(2, 1, one_);
  sum_subsets(2, 2, both_);
  for (std::size_t a = 0; a < n; ++a) {
    double* to = out.data() + a * n_pairs;
    for (std::size_t i = 0; i < m_; ++i) {
      const std::size_t bit_i = std::size_t{1} << i;
      for (std::size_t j = i + 1; j < m_; ++j) {
        const std::size_t bit_j = std::size_t{1} << j;
        const std::size_t rest = a & ~(bit_i | bit_j);
        double sum = none_[rest];
        if ((a & bit_i) != 0) sum -= one_[rest | bit_i] - one_[rest];
        if ((a & bit_j) != 0) sum -= one_[rest | bit_j] - one_[rest];
        if ((a & bit_i) != 0 && (a & bit_j) != 0) {
          sum += (both_[a] - both_[a ^ bit_i]) - (both_[a ^ bit_j] - both_[rest]);
        }
        *to++ = sum / 2;
      }
    }
  }
}

}  // namespace spinney::explain
