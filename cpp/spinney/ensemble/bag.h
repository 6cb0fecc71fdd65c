// Bootstrap samples: how often each row is drawn for a tree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "spinney/common/elementary.h"
#include "spinney/common/log.h"
#include "spinney/common/random.h"
#include "spinney/common/types.h"

namespace spinney::ensemble {

// Draws rows uniformly or in proportion to weights. With replacement: by Walker's alias method, two
// random numbers per draw. Without replacement: rows drawn before are rejected. If that takes too
// long because a few rows have nearly all of the weight, the remaining rows are drawn by
// exponential variates (Efraimidis and Spirakis 2006), from the same distribution.
class Bag {
 public:
  // weights: null for uniform.
  Bag(std::size_t n_rows, std::size_t n_drawn, bool replace, const double* weights);

  // Calls visit with the rows drawn for a tree, in the order drawn, and counts them; `counts` is
  // zero before.
  template <class Visit>
  void draw(std::uint64_t tree_seed, std::uint32_t* counts, const Visit& visit) const {
    common::Stream stream(tree_seed, common::Purpose::rows, 0);
    if (!replace_ && keep_.empty() && 2 * n_drawn_ > n_rows_) return shuffle(stream, counts, visit);
    std::size_t n_again = 0;
    for (std::size_t i = 0; i < n_drawn_;) {
      auto row = static_cast<std::size_t>(stream.below(n_rows_));
      if (!keep_.empty() && stream.uniform() >= keep_[row]) row = alias_[row];
      if (!replace_ && counts[row] > 0) {
        if (++n_again < most_again * (n_rows_ + most_again)) continue;
        return draw_rest(stream, n_drawn_ - i, counts, visit);
      }
      ++counts[row];
      visit(row);
      ++i;
    }
  }

 private:
  static constexpr std::size_t most_again = 64;  // draws for each row

  // The rows with the smallest -log(u) / weight among those that were not drawn.
  template <class Visit>
  void draw_rest(common::Stream& stream, std::size_t n, std::uint32_t* counts,
                 const Visit& visit) const {
    std::vector<std::pair<double, common::Row>> order;
    for (std::size_t row = 0; row < n_rows_; ++row) {
      const double u = stream.uniform();
      if (counts[row] > 0 || !(weights_[row] > 0)) continue;
      order.emplace_back(common::log(-common::log1p(-u)) - common::log(weights_[row]),
                         static_cast<common::Row>(row));
    }
    n = std::min(n, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end());
    for (std::size_t i = 0; i < n; ++i) {
      ++counts[order[i].second];
      visit(static_cast<std::size_t>(order[i].second));
    }
  }

  // Most of the rows without replacement: the beginning of a random order.
  template <class Visit>
  void shuffle(common::Stream& stream, std::uint32_t* counts, const Visit& visit) const {
    std::vector<common::Row> order(n_rows_);
    for (std::size_t row = 0; row < n_rows_; ++row) order[row] = static_cast<common::Row>(row);
    for (std::size_t i = 0; i < n_drawn_; ++i) {
      std::swap(order[i], order[i + static_cast<std::size_t>(stream.below(n_rows_ - i))]);
      ++counts[order[i]];
      visit(static_cast<std::size_t>(order[i]));
    }
  }

  std::size_t n_rows_;
  std::size_t n_drawn_;
  bool replace_;
  const double* weights_;
  std::vector<double> keep_;
  std::vector<common::Row> alias_;
};

}  // namespace spinney::ensemble
