// The k nearest rows found so far. The smaller index wins a tie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace spinney::distance {

// Row indices in results, of the type that NumPy uses for indexing.
using RowIndex = std::int64_t;

class Nearest {
 public:
  explicit Nearest(std::size_t k) : k_(k), distances_(k), indices_(k) {}

  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  bool is_full() const { return size_ == k_; }

  // The largest distance that may still enter: the k-th smallest, or infinity.
  double worst() const {
    return size_ < k_ ? std::numeric_limits<double>::infinity() : distances_[last()];
  }
  // The index of the worst row; at the same distance, only a smaller index replaces it.
  RowIndex worst_index() const {
    return size_ < k_ ? std::numeric_limits<RowIndex>::max() : indices_[last()];
  }

  void add(double distance, RowIndex index) {
    if (size_ == k_) {
      if (!precedes(distance, index, distances_[last()], indices_[last()])) return;
    }
    if (k_ <= few) {
      insert(distance, index);
    } else {
      push(distance, index);
    }
  }

  // Sorts by distance, then by index.
  void sort() {
    if (k_ <= few) return;  // already sorted
    std::vector<std::size_t> order(size_);
    for (std::size_t i = 0; i < size_; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return precedes(distances_[a], indices_[a], distances_[b], indices_[b]);
    });
    std::vector<double> distances(size_);
    std::vector<RowIndex> indices(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      distances[i] = distances_[order[i]];
      indices[i] = indices_[order[i]];
    }
    std::copy(distances.begin(), distances.end(), distances_.begin());
    std::copy(indices.begin(), indices.end(), indices_.begin());
  }

  // Adds rows first, first + 1, …; distances[i] is that of row first + i. NaN counts as infinity.
  void add_block(const double* distances, std::size_t n, RowIndex first);

  // Writes the rows, nearest first, and clears the list.
  void drain(double* distances, RowIndex* indices) {
    sort();
    std::copy_n(distances_.begin(), size_, distances);
    std::copy_n(indices_.begin(), size_, indices);
    clear();
  }

  const double* distances() const { return distances_.data(); }
  const RowIndex* indices() const { return indices_.data(); }

 private:
  static constexpr std::size_t few = 32;  // a sorted list is faster than a heap up to this size

  static bool precedes(double a, RowIndex index_a, double b, RowIndex index_b) {
    return a < b || (a == b && index_a < index_b);
  }
  // The position of the worst row: the end of the list, or the top of the heap.
  std::size_t last() const { return k_ <= few ? k_ - 1 : 0; }

  void insert(double distance, RowIndex index) {
    std::size_t at = size_ < k_ ? size_++ : k_ - 1;
    while (at > 0 && precedes(distance, index, distances_[at - 1], indices_[at - 1])) {
      distances_[at] = distances_[at - 1];
      indices_[at] = indices_[at - 1];
      --at;
    }
    distances_[at] = distance;
    indices_[at] = index;
  }

  void push(double distance, RowIndex index) {
    if (size_ < k_) {
      std::size_t at = size_++;
      while (at > 0) {
        const std::size_t parent = (at - 1) / 2;
        if (!precedes(distances_[parent], indices_[parent], distance, index)) break;
        distances_[at] = distances_[parent];
        indices_[at] = indices_[parent];
        at = parent;
      }
      distances_[at] = distance;
      indices_[at] = index;
      return;
    }
    std::size_t at = 0;
    while (true) {
      std::size_t child = 2 * at + 1;
      if (child >= size_) break;
      if (child + 1 < size_ && precedes(distances_[child], indices_[child], distances_[child + 1],
                                        indices_[child + 1])) {
        ++child;
      }
      if (!precedes(distance, index, distances_[child], indices_[child])) break;
      distances_[at] = distances_[child];
      indices_[at] = indices_[child];
      at = child;
    }
    distances_[at] = distance;
    indices_[at] = index;
  }

  std::size_t k_;
  std::size_t size_ = 0;
  std::vector<double> distances_;
  std::vector<RowIndex> indices_;
};

// The first position at or after `i` whose value is below the bound, or n.
std::size_t find_below(const double* values, std::size_t i, std::size_t n, double bound);

// The k nearest columns of each row of a matrix of distances, as n_rows × k arrays.
void select_nearest(const double* matrix, std::size_t n_rows, std::size_t n_columns, std::size_t k,
                    int n_threads, double* distances, std::int64_t* columns);

}  // namespace spinney::distance
