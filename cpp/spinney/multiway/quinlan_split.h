// How much a question about one column tells of the class: information gain, and what C4.5 makes of
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/multiway/quinlan_rows.h"

namespace spinney::multiway {

struct QuinlanOptions {
  bool gain_ratio = true;           // C4.5: by gain ratio, among splits of at least average gain
  bool penalise_thresholds = true;  // C4.5 release 8: a threshold costs log2(cuts) / rows of gain
  bool group_categories = false;    // merge branches while the gain ratio does not fall
  bool missing_is_category = false;
  double min_branch = 2;  // weight that two branches must have at least
  double min_gain = 0;
  std::int64_t max_depth = 0;  // 0: no limit
  // Error-based pruning.
  bool collapse = true;  // subtrees that make no fewer mistakes in training than a leaf
  bool prune = true;
  bool raise = true;
  double confidence = 0.25;
  int n_threads = 1;
};

struct QuinlanSplit {
  bool found = false;
  double gain = 0;
  double info = 0;  // of the split itself, missing values as one more branch
  double threshold = 0;
  std::vector<std::int32_t> branch_of;
  std::size_t n_branches = 0;

  double ratio() const { return info > 0 ? gain / info : 0.0; }
};

struct QuinlanScratch {
  std::vector<double> sums;  // [code * n_classes + class]
  std::vector<double> low;
  std::vector<double> high;
  std::vector<std::uint64_t> keys;
};

// n log2 n − Σ n_k log2 n_k: n times the entropy.
double total_info(const double* counts, std::size_t n);

// The best question about a column in a node.
QuinlanSplit find_split(const QuinlanRows& rows, const QuinlanItems& items,
                        const MultiwayNode& node, std::size_t feature,
                        const QuinlanOptions& options, QuinlanScratch& scratch);

}  // namespace spinney::multiway
