// The first principal component of groups of class fractions, weighted by group.
#pragma once

#include <cstddef>
#include <vector>

namespace spinney::criterion {

// stats: n_groups rows of `size` numbers. [0] is the group's weight, [first, first + n_classes) its
// weight per class. Power iteration on the covariance of the class fractions; the start and the
// number of steps are fixed, so that every machine computes the same result.
std::vector<double> first_principal_component(const double* stats, std::size_t n_groups,
                                              std::size_t size, std::size_t first,
                                              std::size_t n_classes);

}  // namespace spinney::criterion
