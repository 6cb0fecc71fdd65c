// Brute-force search in Euclidean distance. BLAS computes products of blocks of rows and queries in
// single precision. Rows that may be among the nearest, given the rounding error of the products,
// are candidates. Their exact distances decide.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/distance/nearest.h"

namespace spinney::neighbors {

// Subtracts a centre from rows and rounds them to single precision. half_norms[i] is half the
// squared length of row i. Returns the largest of these before rounding.
template <class T>
double centre_rows(const T* points, std::size_t n, std::size_t d, const double* centre,
                   int n_threads, float* centred, float* half_norms);

// Collects candidates of a block of queries from block to block of rows.
class BruteSelection {
 public:
  // error[i] bounds the error of approximate scores of query i. A score is half the squared
  // distance without half the squared length of the query: half_norm - product.
  BruteSelection(std::size_t n_queries, std::size_t k, std::vector<float> error);

  // Adds rows first … first + n - 1; products[i * n + j] is the product of query i and row first +
  // j.
  void add_block(const float* products, const float* half_norms, std::size_t n, std::size_t first,
                 int n_threads);

  // Computes exact distances of the candidates (or of all rows if there are too many candidates)
  // and the k nearest rows.
  template <class T>
  void finish(const T* points, std::size_t n_points, std::size_t d, const double* queries,
              int n_threads, double* distances, distance::RowIndex* indices);

 private:
  void add_block_to(std::size_t query, const float* products, const float* half_norms,
                    std::size_t n, std::size_t first);
  void compact(std::size_t query);

  std::size_t k_;
  std::vector<float> error_;
  std::vector<float> limit_;                // of each query; candidates have at most this score
  std::vector<std::vector<float>> scores_;  // of the candidates
  std::vector<std::vector<std::uint32_t>> rows_;
  std::vector<std::uint8_t> overflowed_;
};

}  // namespace spinney::neighbors
