// A k-d tree. A node is split along the widest side of its box, near the median. Boxes are tight.
// Points are stored leaf by leaf, and column-major within a leaf, for SIMD scans. Equal points stay
// in one leaf, however many they are.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/large_array.h"
#include "spinney/common/types.h"
#include "spinney/distance/nearest.h"
#include "spinney/neighbors/found.h"

namespace spinney::neighbors {

// Number of points of a leaf whose distances are computed at once.
constexpr std::size_t kd_lanes = 8;
constexpr std::size_t kd_width(std::size_t n_points) {
  return (n_points + kd_lanes - 1) / kd_lanes * kd_lanes;
}

struct KdQuery {
  std::size_t k = 1;
  double eps = 0;               // allowed relative error of the distances
  std::int64_t max_leaves = 0;  // most leaves that a query visits; 0: no limit (exact search)
  int n_threads = 1;
};

class KdTree {
 public:
  // p is the power of the Minkowski distance, from 1 to infinity. `points` is a row-major matrix.
  KdTree(const double* points, std::size_t n, std::size_t d, double p, std::size_t leaf_size,
         int n_threads);

  std::size_t size() const { return n_; }
  std::size_t dimension() const { return d_; }

  // The nearest rows of each query, nearest first. `indices` and `distances` are n_queries × k. If
  // max_leaves leaves a query with fewer rows, the rest is filled with size() and infinity.
  void query(const double* queries, std::size_t n_queries, const KdQuery& options,
             double* distances, distance::RowIndex* indices) const;

  // The rows within radii[i] of query i, sorted by distance if `sorted`, else by index.
  Found within(const double* queries, std::size_t n_queries, const double* radii, bool sorted,
               int n_threads) const;
  std::vector<distance::RowIndex> count_within(const double* queries, std::size_t n_queries,
                                               const double* radii, int n_threads) const;

 private:
  // The children of an inner node are `child` and `child` + 1. The coordinates of a leaf start at
  // `begin` and are padded to full vectors.
  struct Node {
    std::uint32_t child = 0;  // 0 in a leaf
    common::Row n_points = 0;
    common::Row first = 0;     // position of its first row in order_
    common::Row smallest = 0;  // smallest row index
    std::size_t begin = 0;     // position of a leaf's coordinates
    bool uniform = false;      // all points are equal, and only one is stored
  };

  template <class Metric>
  friend class KdSearch;
  friend class KdBuilder;

  std::vector<common::Row> cache_friendly_order(const double* queries, std::size_t n_queries) const;
  template <class Body>
  void with_metric(const Body& body) const;

  std::size_t n_;
  std::size_t d_;
  double p_;
  std::vector<Node> nodes_;
  std::vector<double> boxes_;  // node i at 2 * d * i: lower bounds, then upper bounds
  common::LargeArray<double> coordinates_;
  std::vector<common::Row> order_;  // row indices, leaf by leaf, ascending in a leaf
};

}  // namespace spinney::neighbors
