// The nearest rows by looking at all of them. Products of blocks of rows and queries come from
// BLAS, in single precision; every row that may be among the nearest, given how far such a product
// may be off, is kept and measured exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/distance/nearest.h"

namespace spinney::neighbors {

// Rows about a centre, in single precision, and half of their squared lengths. Returns the largest
// of these, before it was rounded.
template <class T>
double centre_rows(const T* points, std::size_t n, std::size_t d, const double* centre,
                   int n_threads, float* centred, float* half_norms);

// Candidates of some queries, while blocks of rows pass by.
class BruteSelection {
 public:
  // half_norms: half of the squared length of each row. error[i]: what an approximate half of a
  // squared distance of query i may be off by, at most, up to a part that all rows share.
  BruteSelection(std::size_t n_queries, std::size_t k, std::vector<float> error);

  // products[i * n + j] = product of query i and row first + j.
  void look(const float* products, const float* half_norms, std::size_t n, std::size_t first,
            int n_threads);

  // Exact distances of candidates (of all rows where they are too many), and the k nearest.
  template <class T>
  void finish(const T* points, std::size_t n_points, std::size_t d, const double* queries,
              int n_threads, double* distances, distance::Place* places);

 private:
  void look_at(std::size_t query, const float* products, const float* half_norms, std::size_t n,
               std::size_t first);
  void compact(std::size_t query);

  std::size_t k_;
  std::vector<float> error_;
  std::vector<float> limit_;                // of each query: beyond it no row is a candidate
  std::vector<std::vector<float>> scores_;  // approximate, up to a part that all rows share
  std::vector<std::vector<std::uint32_t>> rows_;
  std::vector<std::uint8_t> overflowed_;
};

}  // namespace spinney::neighbors
