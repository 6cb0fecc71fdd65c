// A k-d tree. A node is cut along the widest side of its box, near the median; points lie leaf by
// leaf, coordinate by coordinate, so that a leaf is scanned with vectors. Boxes are tight. Points
// that are all the same stay in one leaf, whatever their number.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/large_array.h"
#include "spinney/common/types.h"
#include "spinney/distance/nearest.h"
#include "spinney/neighbors/found.h"

namespace spinney::neighbors {

// Points of a leaf are measured this many at a time.
constexpr std::size_t kd_lanes = 8;
constexpr std::size_t kd_width(std::size_t n_points) {
  return (n_points + kd_lanes - 1) / kd_lanes * kd_lanes;
}

struct KdQuery {
  std::size_t k = 1;
  double eps = 0;               // a neighbour may be farther than the true one by this share
  std::int64_t max_leaves = 0;  // how many leaves a query may visit; 0: as many as it takes
  int n_threads = 1;
};

class KdTree {
 public:
  // p: of the Minkowski distance, at least 1, or infinity. points: row by row.
  KdTree(const double* points, std::size_t n, std::size_t d, double p, std::size_t leaf_size,
         int n_threads);

  std::size_t size() const { return n_; }
  std::size_t dimension() const { return d_; }

  // The nearest rows of each query, in order; places and distances are n_queries × k.
  void query(const double* queries, std::size_t n_queries, const KdQuery& options,
             double* distances, distance::Place* places) const;

  // The rows within a radius of each query (it may differ from query to query), nearest first if
  // sorted, else by number.
  Found within(const double* queries, std::size_t n_queries, const double* radii, bool sorted,
               int n_threads) const;
  std::vector<distance::Place> count_within(const double* queries, std::size_t n_queries,
                                            const double* radii, int n_threads) const;

 private:
  // Children of an inner node are `child` and `child` + 1. A leaf has its points at `begin`, padded
  // to full vectors.
  struct Node {
    std::uint32_t child = 0;  // 0: a leaf
    common::Row n_points = 0;
    common::Row first = 0;     // of its points in order_
    common::Row smallest = 0;  // number among its rows
    std::size_t begin = 0;     // of a leaf's coordinates
    bool uniform = false;      // all its points are the same: one of them is there
  };

  template <class Metric>
  friend class KdSearch;
  friend class KdBuilder;

  std::vector<common::Row> walk_order(const double* queries, std::size_t n_queries) const;
  template <class Body>
  void with_metric(const Body& body) const;

  std::size_t n_;
  std::size_t d_;
  double p_;
  std::vector<Node> nodes_;
  std::vector<double> boxes_;  // [node * 2d]: lows, then highs
  common::LargeArray<double> coordinates_;
  std::vector<common::Row> order_;  // rows, leaf by leaf; ascending in a leaf
};

}  // namespace spinney::neighbors
