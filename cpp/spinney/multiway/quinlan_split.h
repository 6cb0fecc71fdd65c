// The best split of one column by information gain or gain ratio.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/multiway/quinlan_rows.h"

namespace spinney::multiway {

struct QuinlanOptions {
  bool gain_ratio = true;         // C4.5: gain ratio among splits of average gain; ID3: gain
  bool threshold_cost = true;     // C4.5 release 8: subtract log2(cuts) / rows from the gain
  bool group_categories = false;  // merge categories while the gain ratio does not decrease
  bool missing_is_category = false;
  double min_samples_branch = 2;  // minimum weight of at least two branches
  double min_gain = 0;
  std::int64_t max_depth = 0;  // 0: no limit
  // Error-based pruning.
  bool collapse = true;  // replace subtrees that have no fewer training errors than a leaf
  bool prune = true;
  bool subtree_raising = true;
  double confidence = 0.25;
  int n_threads = 1;

  // Throws InputError if an option is out of range.
  void check() const;
};

struct QuinlanSplit {
  bool found = false;
  double gain = 0;
  double info = 0;  // split information; missing values count as a branch
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

// n log2 n − Σ n_k log2 n_k = n · entropy.
double total_info(const double* counts, std::size_t n);

// The best split of a column in a node.
QuinlanSplit find_split(const QuinlanRows& rows, const QuinlanItems& items,
                        const MultiwayNode& node, std::size_t feature,
                        const QuinlanOptions& options, QuinlanScratch& scratch);

}  // namespace spinney::multiway
