// The rows and derivatives that a tree is fitted to.
#pragma once

#include <cstdint>

#include "spinney/boosting/histogram.h"

namespace spinney::boosting {

struct TreeInput {
  std::uint64_t number = 0;           // of the tree; random draws depend on it
  const common::Row* rows = nullptr;  // training rows, ascending; null: 0 … n_rows-1
  std::size_t n_rows = 0;
  loss::Derivatives derivatives;
  RowWeights weights;
  bool constant_hessian = false;  // all second derivatives are 1
};

}  // namespace spinney::boosting
