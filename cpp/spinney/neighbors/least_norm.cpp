#include "spinney/neighbors/least_norm.h"

#include <algorithm>
#include <cmath>

namespace spinney::neighbors {

namespace {

double dot(const double* a, const double* b, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Householder reflections transform A into the upper triangular R.
void reduce(double* columns, std::size_t n_rows, std::size_t n_columns, std::size_t stride) {
  for (std::size_t k = 0; k < n_columns; ++k) {
    double* const pivot = columns + k * stride;
    const std::size_t n = n_rows - k;
    const double length = std::sqrt(dot(pivot + k, pivot + k, n));
    if (length == 0) continue;
    const double diagonal = pivot[k] > 0 ? -length : length;
    pivot[k] -= diagonal;
    const double square = dot(pivot + k, pivot + k, n);
    for (std::size_t c = k + 1; c < n_columns; ++c) {
      double* const column = columns + c * stride;
      const double twice = 2 * dot(pivot + k, column + k, n) / square;
      for (std::size_t i = k; i < n_rows; ++i) column[i] -= twice * pivot[i];
    }
    pivot[k] = diagonal;
    std::fill(pivot + k + 1, pivot + n_rows, 0.0);
  }
}

// One-sided Jacobi rotations make columns orthogonal. They become left singular vectors times
// singular values.
void orthogonalise(std::vector<double>& columns, std::size_t n_rows, std::size_t n_columns) {
  constexpr int max_sweeps = 40;
  for (int sweep = 0; sweep < max_sweeps; ++sweep) {
    bool rotated = false;
    for (std::size_t a = 0; a + 1 < n_columns; ++a) {
      double* const left = columns.data() + a * n_rows;
      for (std::size_t b = a + 1; b < n_columns; ++b) {
        double* const right = columns.data() + b * n_rows;
        const double left_square = dot(left, left, n_rows);
        const double right_square = dot(right, right, n_rows);
        const double product = dot(left, right, n_rows);
        if (std::abs(product) <= 1e-15 * std::sqrt(left_square) * std::sqrt(right_square)) continue;
        rotated = true;
        const double zeta = (right_square - left_square) / (2 * product);
        const double root = std::abs(zeta) + std::sqrt(1 + zeta * zeta);
        const double tangent = (zeta < 0 ? -1 : 1) / root;
        const double cosine = 1 / std::sqrt(1 + tangent * tangent);
        const double sine = cosine * tangent;
        for (std::size_t i = 0; i < n_rows; ++i) {
          const double l = left[i], r = right[i];
          left[i] = cosine * l - sine * r;
          right[i] = sine * l + cosine * r;
        }
      }
    }
    if (!rotated) return;
  }
}

}  // namespace

void LeastNorm::factor(double* columns, std::size_t n_rows, std::size_t n_columns,
                       std::size_t stride, double tolerance) {
  n_columns_ = n_columns;
  // The columns of Aᵀ, or of Rᵀ if A is tall. The rotations turn them into right singular vectors.
  const std::size_t n_directions = std::min(n_rows, n_columns);
  if (n_rows > n_columns) reduce(columns, n_rows, n_columns, stride);
  directions_.resize(n_directions * n_columns);
  for (std::size_t k = 0; k < n_directions; ++k) {
    for (std::size_t c = 0; c < n_columns; ++c) {
      directions_[k * n_columns + c] = columns[c * stride + k];
    }
  }
  orthogonalise(directions_, n_columns, n_directions);
  squares_.resize(n_directions);
  double largest = 0;
  for (std::size_t k = 0; k < n_directions; ++k) {
    const double* const direction = directions_.data() + k * n_columns;
    squares_[k] = dot(direction, direction, n_columns);
    largest = std::max(largest, squares_[k]);
  }
  for (double& square : squares_) {
    if (!(square > tolerance * tolerance * largest)) square = 0;
  }
  sum_.resize(n_columns);
}

void LeastNorm::apply(const double* vector, double* out) const {
  std::fill(sum_.begin(), sum_.end(), 0.0);
  for (std::size_t k = 0; k < squares_.size(); ++k) {
    if (squares_[k] == 0) continue;
    const double* const direction = directions_.data() + k * n_columns_;
    const double factor = dot(direction, vector, n_columns_) / squares_[k] / squares_[k];
    for (std::size_t c = 0; c < n_columns_; ++c) sum_[c] += factor * direction[c];
  }
  std::copy(sum_.begin(), sum_.end(), out);
}

}  // namespace spinney::neighbors
