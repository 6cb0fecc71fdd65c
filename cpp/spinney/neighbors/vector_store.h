// The vectors of an index as float32 and optionally also as bytes (codes). Codes have an offset for
// each column and one scale, so that their squared distances approximate those of the vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spinney/common/large_array.h"
#include "spinney/neighbors/vector_space.h"

namespace spinney::neighbors {

enum class SearchMetric { euclidean, cosine, inner_product };

class VectorStore {
 public:
  VectorStore(SearchMetric metric, std::size_t n_features, bool has_codes);

  SearchMetric metric() const { return metric_; }
  std::size_t size() const { return size_; }
  std::size_t n_features() const { return n_features_; }
  bool has_codes() const { return has_codes_; }
  std::size_t padded_size() const { return padded_size_; }  // floats of a prepared row
  std::size_t code_stride() const { return code_stride_; }
  const float* row(Slot slot) const { return rows_.data() + slot * n_features_; }

  EuclideanSpace euclidean_space() const { return {rows_.data(), n_features_}; }
  ProductSpace product_space() const { return {rows_.data(), n_features_}; }
  CodeSpace code_space() const { return {codes_.data(), code_stride_}; }

  // Calls body(space) with the space of the floats.
  template <class Body>
  void with_float_space(const Body& body) const {
    if (metric_ == SearchMetric::euclidean) {
      body(euclidean_space());
    } else {
      body(product_space());
    }
  }

  // Calls body(space) with the space of the codes, or of the floats if there are no codes.
  template <class Body>
  void with_space(const Body& body) const {
    if (has_codes_) {
      body(code_space());
    } else {
      with_float_space(body);
    }
  }

  // Appends the rows of a row-major matrix. For the metric cosine they are normalised, unless they
  // are `prepared`. The first rows define offsets and scale of the codes.
  void add(const float* values, std::size_t n_rows, bool prepared);
  void reserve(std::size_t n_rows);
  void drop_after(std::size_t n_rows) { size_ = n_rows; }

  // Writes a row as it is stored, padded with zeros to padded_size() floats.
  void prepare(const float* values, float* out) const;

  // Writes the codes of a prepared row. Returns the distance between the row and its codes.
  double encode(const float* prepared, std::uint8_t* out) const;

  // A lower bound of the distance of two vectors, given the squared distance of their codes and the
  // error of the codes of one of them.
  double least_distance(float distance, double error) const;

  // Moves row order[i] to position i.
  void reorder(const std::vector<Slot>& order);

  double scale() const { return scale_; }
  const std::vector<float>& offsets() const { return offsets_; }
  void set_codes(double scale, std::vector<float> offsets);

  std::size_t n_bytes() const;

 private:
  void choose_codes(std::size_t n_rows);
  void normalise(const float* values, float* out) const;

  SearchMetric metric_;
  std::size_t n_features_;
  bool has_codes_;
  std::size_t padded_size_;
  std::size_t code_stride_;
  std::size_t size_ = 0;
  common::LargeArray<float> rows_;
  common::LargeArray<std::uint8_t> codes_;
  std::vector<float> offsets_;
  double scale_ = 0;
  double code_error_ = 0;  // largest error of a row
};

}  // namespace spinney::neighbors
