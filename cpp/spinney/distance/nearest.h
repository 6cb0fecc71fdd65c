// The k nearest rows found so far, of equal distances those with the smallest numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace spinney::distance {

// Numbers of rows in results: what NumPy indexes with.
using Place = std::int64_t;

class Nearest {
 public:
  explicit Nearest(std::size_t k) : k_(k), distances_(k), places_(k) {}

  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  bool is_full() const { return size_ == k_; }

  // What a distance must not exceed to have a chance.
  double worst() const {
    return size_ < k_ ? std::numeric_limits<double>::infinity() : distances_[last()];
  }
  // Of the row that is worst; only smaller numbers beat it at the same distance.
  Place worst_place() const {
    return size_ < k_ ? std::numeric_limits<Place>::max() : places_[last()];
  }

  void add(double distance, Place place) {
    if (size_ == k_) {
      if (!precedes(distance, place, distances_[last()], places_[last()])) return;
    }
    if (k_ <= few) {
      insert(distance, place);
    } else {
      push(distance, place);
    }
  }

  // Puts all in order.
  void sort() {
    if (k_ <= few) return;  // they are
    std::vector<std::size_t> order(size_);
    for (std::size_t i = 0; i < size_; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return precedes(distances_[a], places_[a], distances_[b], places_[b]);
    });
    std::vector<double> distances(size_);
    std::vector<Place> places(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      distances[i] = distances_[order[i]];
      places[i] = places_[order[i]];
    }
    std::copy(distances.begin(), distances.end(), distances_.begin());
    std::copy(places.begin(), places.end(), places_.begin());
  }

  // distances[i] is that of row first + i; those that are no number come last.
  void add_block(const double* distances, std::size_t n, Place first);

  // Writes what was kept, nearest first, and starts anew.
  void drain(double* distances, Place* places) {
    sort();
    std::copy_n(distances_.begin(), size_, distances);
    std::copy_n(places_.begin(), size_, places);
    clear();
  }

  const double* distances() const { return distances_.data(); }
  const Place* places() const { return places_.data(); }

 private:
  static constexpr std::size_t few = 32;  // up to here a sorted list is faster than a heap

  static bool precedes(double a, Place place_a, double b, Place place_b) {
    return a < b || (a == b && place_a < place_b);
  }
  // The place of the worst: the end of the list, or the top of the heap.
  std::size_t last() const { return k_ <= few ? k_ - 1 : 0; }

  void insert(double distance, Place place) {
    std::size_t at = size_ < k_ ? size_++ : k_ - 1;
    while (at > 0 && precedes(distance, place, distances_[at - 1], places_[at - 1])) {
      distances_[at] = distances_[at - 1];
      places_[at] = places_[at - 1];
      --at;
    }
    distances_[at] = distance;
    places_[at] = place;
  }

  void push(double distance, Place place) {
    if (size_ < k_) {
      std::size_t at = size_++;
      while (at > 0) {
        const std::size_t parent = (at - 1) / 2;
        if (!precedes(distances_[parent], places_[parent], distance, place)) break;
        distances_[at] = distances_[parent];
        places_[at] = places_[parent];
        at = parent;
      }
      distances_[at] = distance;
      places_[at] = place;
      return;
    }
    std::size_t at = 0;
    while (true) {
      std::size_t child = 2 * at + 1;
      if (child >= size_) break;
      if (child + 1 < size_ &&
          precedes(distances_[child], places_[child], distances_[child + 1], places_[child + 1])) {
        ++child;
      }
      if (!precedes(distance, place, distances_[child], places_[child])) break;
      distances_[at] = distances_[child];
      places_[at] = places_[child];
      at = child;
    }
    distances_[at] = distance;
    places_[at] = place;
  }

  std::size_t k_;
  std::size_t size_ = 0;
  std::vector<double> distances_;
  std::vector<Place> places_;
};

// The first place from `i` on where a value is below the bound, or n.
std::size_t find_below(const double* values, std::size_t i, std::size_t n, double bound);

// The k nearest columns of each row of a matrix of distances, as n_rows × k arrays.
void select_nearest(const double* matrix, std::size_t n_rows, std::size_t n_columns, std::size_t k,
                    int n_threads, double* distances, std::int64_t* columns);

}  // namespace spinney::distance
