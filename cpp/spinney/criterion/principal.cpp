#include "spinney/criterion/principal.h"

#include <cmath>

namespace spinney::criterion {

std::vector<double> first_principal_component(const double* stats, std::size_t n_groups,
                                              std::size_t size, std::size_t first,
                                              std::size_t n_classes) {
  std::vector<double> mean(n_classes);
  double total = 0;
  for (std::size_t g = 0; g < n_groups; ++g) {
    total += stats[g * size];
    for (std::size_t k = 0; k < n_classes; ++k) mean[k] += stats[g * size + first + k];
  }
  for (double& m : mean) m /= total;
  std::vector<double> covariance(n_classes * n_classes);
  for (std::size_t g = 0; g < n_groups; ++g) {
    const double* stat = stats + g * size;
    const double weight = stat[0];
    if (!(weight > 0)) continue;
    for (std::size_t a = 0; a < n_classes; ++a) {
      const double da = stat[first + a] / weight - mean[a];
      for (std::size_t b = 0; b < n_classes; ++b) {
        covariance[a * n_classes + b] += weight * da * (stat[first + b] / weight - mean[b]);
      }
    }
  }
  // Start from the class with the largest variance. It is orthogonal to the leading component only
  // if that component does not involve it.
  std::size_t start = 0;
  for (std::size_t k = 1; k < n_classes; ++k) {
    if (covariance[k * n_classes + k] > covariance[start * n_classes + start]) start = k;
  }
  std::vector<double> component(n_classes);
  component[start] = 1;
  std::vector<double> next(n_classes);
  for (int step = 0; step < 50; ++step) {
    double norm = 0;
    for (std::size_t a = 0; a < n_classes; ++a) {
      double sum = 0;
      for (std::size_t b = 0; b < n_classes; ++b) {
        sum += covariance[a * n_classes + b] * component[b];
      }
      next[a] = sum;
      norm += sum * sum;
    }
    if (!(norm > 0)) break;
    norm = std::sqrt(norm);
    for (std::size_t a = 0; a < n_classes; ++a) component[a] = next[a] / norm;
  }
  return component;
}

}  // namespace spinney::criterion
