// A ball tree. Each node has a central row and a radius that covers all its rows. The tree works
// with every metric, since it needs only the triangle inequality.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/distance/nearest.h"
#include "spinney/neighbors/found.h"

namespace spinney::neighbors {

enum class BallMetric : std::uint8_t {
  minkowski,  // with the power p and optional weights of the features
  haversine,  // great-circle distance of latitude and longitude in radians
  hamming,    // fraction of features that differ
  canberra,
  // Distances of Boolean rows, where a value is true if it is not zero. Let a be the number of
  // features that are true in both rows and b the number that are true in one row only.
  jaccard,          // b / (a + b)
  rogers_tanimoto,  // 2 b / (n_features + b)
  sokal_sneath,     // 2 b / (a + 2 b)
  custom,
};

struct BallDistance {
  BallMetric kind = BallMetric::minkowski;
  double p = 2;
  std::vector<double> weights;
  std::function<double(const double*, const double*)> custom;

  double operator()(const double* a, const double* b, std::size_t d) const;
  // Whether several threads may compute distances at once.
  bool is_parallel() const { return kind != BallMetric::custom; }
};

class BallTree {
 public:
  BallTree(const double* points, std::size_t n, std::size_t d, BallDistance distance,
           std::size_t leaf_size);

  std::size_t size() const { return n_; }
  std::size_t dimension() const { return d_; }

  void query(const double* queries, std::size_t n_queries, std::size_t k, int n_threads,
             double* distances, distance::RowIndex* indices) const;
  // The rows within radii[i] of query i, sorted by distance if `sorted`, else by index.
  Found within(const double* queries, std::size_t n_queries, const double* radii, bool sorted,
               int n_threads) const;
  // Whether several threads may compute distances at once.
  bool is_parallel() const { return distance_.is_parallel(); }

 private:
  struct Node {
    std::uint32_t child = 0;  // 0 in a leaf; the right child is child + 1
    common::Row begin = 0;
    common::Row end = 0;
    common::Row centre = 0;    // index of the central row
    common::Row smallest = 0;  // smallest row index
    double radius = 0;
  };

  double measure(const double* query, common::Row row) const {
    return distance_(query, points_.data() + std::size_t{row} * d_, d_);
  }
  void build(std::size_t leaf_size);
  void find(const double* query, distance::Nearest& out) const;

  std::size_t n_;
  std::size_t d_;
  BallDistance distance_;
  std::vector<double> points_;
  std::vector<Node> nodes_;
  std::vector<common::Row> order_;
};

}  // namespace spinney::neighbors
