// The k nearest rows of one query. Rows are offered in ascending order, so that of equal distances
// the smaller row stays: the one that comes later must be strictly closer to get in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace spinney {

class Nearest {
 public:
  explicit Nearest(std::size_t k) : k_(k) { heap_.reserve(k); }

  // Rows at this distance or farther need not be offered, once there are k.
  double bound() const { return bound_; }
  bool is_full() const { return heap_.size() == k_; }

  // Distances that are no number come last.
  void offer(double distance, std::int64_t row) {
    if (distance != distance) distance = std::numeric_limits<double>::infinity();
    if (!is_full()) {
      heap_.emplace_back(distance, row);
      std::push_heap(heap_.begin(), heap_.end());
    } else if (distance < bound_) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.back() = {distance, row};
      std::push_heap(heap_.begin(), heap_.end());
    }
    if (is_full()) bound_ = heap_.front().first;
  }

  // distances[i] is that of row first + i.
  void offer_block(const double* distances, std::size_t n, std::int64_t first);

  // Writes what was kept, nearest first, and starts anew.
  void drain(double* distances, std::int64_t* rows) {
    std::sort_heap(heap_.begin(), heap_.end());
    for (std::size_t i = 0; i < heap_.size(); ++i) {
      distances[i] = heap_[i].first;
      rows[i] = heap_[i].second;
    }
    heap_.clear();
    bound_ = std::numeric_limits<double>::infinity();
  }

 private:
  std::size_t k_;
  double bound_ = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, std::int64_t>> heap_;  // the farthest on top
};

// The first place from `i` on where a value is below the bound, or n.
std::size_t find_below(const double* values, std::size_t i, std::size_t n, double bound);

// The k nearest columns of each row of a matrix of distances, as n_rows × k arrays.
void select_nearest(const double* matrix, std::size_t n_rows, std::size_t n_columns, std::size_t k,
                    int n_threads, double* distances, std::int64_t* columns);

}  // namespace spinney
