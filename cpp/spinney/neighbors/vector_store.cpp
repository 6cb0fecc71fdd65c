#include "spinney/neighbors/vector_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "spinney/common/dispatch.h"
#include "spinney/common/simd.h"
#include "spinney/neighbors/hnsw_graph.h"

namespace spinney::neighbors {

using common::Bytes16;
using common::dispatch;
using common::Ints16;

VectorStore::VectorStore(SearchMetric metric, std::size_t n_features, bool has_codes)
    : metric_(metric),
      n_features_(n_features),
      has_codes_(has_codes),
      padded_size_(padded(n_features, n_floats)),
      code_stride_(has_codes ? padded(n_features, 64) : 0) {}

void VectorStore::reserve(std::size_t n_rows) {
  // Rows are read sixteen floats at a time, so the last one needs padding.
  grow(rows_, size_ * n_features_, n_rows * n_features_ + n_floats);
  if (has_codes_) grow(codes_, size_ * code_stride_, n_rows * code_stride_);
}

void VectorStore::prepare(const float* values, float* out) const {
  normalise(values, out);
  std::fill(out + n_features_, out + padded_size_, 0.0F);
}

void VectorStore::normalise(const float* values, float* out) const {
  if (metric_ != SearchMetric::cosine) {
    std::memcpy(out, values, n_features_ * sizeof(float));
    return;
  }
  double squares = 0;
  for (std::size_t j = 0; j < n_features_; ++j) {
    squares += static_cast<double>(values[j]) * static_cast<double>(values[j]);
  }
  // A row of zeros stays unchanged; it is orthogonal to every vector.
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 1;
  for (std::size_t j = 0; j < n_features_; ++j) {
    out[j] = static_cast<float>(scale * static_cast<double>(values[j]));
  }
}

void VectorStore::add(const float* values, std::size_t n_rows, bool prepared) {
  // Reserves a quarter more after the first rows, so that repeated additions take linear time.
  const std::size_t needed = size_ + n_rows;
  if (needed * n_features_ + n_floats > rows_.size())
    reserve(size_ == 0 ? needed : needed + needed / 4);
  for (std::size_t i = 0; i < n_rows; ++i) {
    float* const out = rows_.data() + (size_ + i) * n_features_;
    if (prepared) {
      std::memcpy(out, values + i * n_features_, n_features_ * sizeof(float));
    } else {
      normalise(values + i * n_features_, out);
    }
  }
  if (has_codes_) {
    if (scale_ == 0) choose_codes(n_rows);
    for (std::size_t i = size_; i < needed; ++i) {
      code_error_ = std::max(
          code_error_, encode(rows_.data() + i * n_features_, codes_.data() + i * code_stride_));
    }
  }
  size_ = needed;
}

void VectorStore::choose_codes(std::size_t n_rows) {
  if (n_rows == 0) return;
  std::vector<float> least(rows_.data(), rows_.data() + n_features_), most = least;
  for (std::size_t i = 1; i < n_rows; ++i) {
    const float* const values = rows_.data() + i * n_features_;
    for (std::size_t j = 0; j < n_features_; ++j) {
      least[j] = std::min(least[j], values[j]);
      most[j] = std::max(most[j], values[j]);
    }
  }
  double widest = 0;
  for (std::size_t j = 0; j < n_features_; ++j) {
    widest = std::max(widest, static_cast<double>(most[j]) - static_cast<double>(least[j]));
  }
  scale_ = widest > 0 ? widest / 255 : 1;
  offsets_.assign(padded_size_, 0.0F);
  for (std::size_t j = 0; j < n_features_; ++j) {
    const double middle = (static_cast<double>(least[j]) + static_cast<double>(most[j])) / 2;
    offsets_[j] = static_cast<float>(middle - 127.5 * scale_);
  }
}

void VectorStore::set_codes(double scale, std::vector<float> offsets) {
  scale_ = scale;
  offsets_ = std::move(offsets);
  offsets_.resize(padded_size_, 0.0F);
}

namespace {

// Returns the squared distance between a row and its codes, in units of the codes.
SPINNEY_INLINE float encode_row_kernel(const float* values, const float* offsets, float per_unit,
                                       std::size_t n_features, std::uint8_t* out) {
  Floats16 squares = {};
  for (std::size_t j = 0; j < n_features; j += n_floats) {
    Floats16 position = (load_floats(values + j) - load_floats(offsets + j)) * per_unit;
    if (n_features - j < n_floats) position = common::keep_first(position, n_features - j);
    const Floats16 least = {}, most = least + 255.0F;
    const Floats16 low = position < least ? least : position;
    const Ints16 code = common::convert<Ints16>((low > most ? most : low) + 0.5F);
    const Floats16 error = position - common::convert<Floats16>(code);
    squares += error * error;
    common::store(out + j, common::convert<Bytes16>(code));
  }
  return common::sum_lanes(squares);
}

float encode_row(const float* values, const float* offsets, float per_unit, std::size_t n_features,
                 std::uint8_t* out) {
  return dispatch<encode_row_kernel>(values, offsets, per_unit, n_features, out);
}

}  // namespace

double VectorStore::encode(const float* prepared, std::uint8_t* out) const {
  std::fill(out + padded_size_, out + code_stride_, std::uint8_t{0});
  const float squares =
      encode_row(prepared, offsets_.data(), static_cast<float>(1 / scale_), n_features_, out);
  return scale_ * std::sqrt(static_cast<double>(squares));
}

double VectorStore::least_distance(float distance, double error) const {
  return scale_ * std::sqrt(static_cast<double>(distance)) - error - code_error_;
}

namespace {

template <class T>
void reorder_rows(common::LargeArray<T>& rows, std::size_t stride, const std::vector<Slot>& order) {
  // Follows the cycles of the permutation with one spare row, instead of a second copy.
  std::vector<bool> done(order.size(), false);
  std::vector<T> spare(stride);
  const auto row = [&](std::size_t i) { return rows.data() + i * stride; };
  for (std::size_t first = 0; first < order.size(); ++first) {
    if (done[first]) continue;
    std::memcpy(spare.data(), row(first), stride * sizeof(T));
    std::size_t at = first;
    for (; order[at] != first; at = order[at]) {
      std::memcpy(row(at), row(order[at]), stride * sizeof(T));
      done[at] = true;
    }
    std::memcpy(row(at), spare.data(), stride * sizeof(T));
    done[at] = true;
  }
}

}  // namespace

void VectorStore::reorder(const std::vector<Slot>& order) {
  reorder_rows(rows_, n_features_, order);
  if (has_codes_) reorder_rows(codes_, code_stride_, order);
}

std::size_t VectorStore::n_bytes() const {
  return rows_.size() * sizeof(float) + codes_.size() + offsets_.size() * sizeof(float);
}

}  // namespace spinney::neighbors
