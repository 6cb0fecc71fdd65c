// Results of out-of-bag rows while a forest grows: predictions, score, importances.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "spinney/ensemble/forest_grower.h"

namespace spinney::ensemble {

// Trees report in any order, from any thread; their reports are added in the order of the trees.
class OutOfBagTally {
 public:
  OutOfBagTally(const table::Table& table, const criterion::Targets& targets,
                const forest::Forest& forest, const ForestOptions& options, OutOfBag& out);

  // counts: how often the tree's sample has each row; null: each once.
  void add(std::size_t index, const forest::Tree& grown, const forest::CompactTree& tree,
           const std::uint32_t* counts);

 private:
  // One tree's predictions for its out-of-bag rows.
  struct Report {
    std::vector<common::Row> rows;
    std::vector<double> values;  // [row][width]
  };

  void count(const Report& report);
  double score() const;
  bool is_right(std::size_t row) const;
  void importances(std::size_t index, const forest::Tree& grown, const forest::CompactTree& tree,
                   const std::vector<common::Row>& rows) const;
  void corrected(const forest::Tree& grown, const std::vector<common::Row>& rows,
                 double* out) const;
  void permutation(const forest::CompactTree& tree, std::uint64_t seed,
                   const std::vector<common::Row>& rows, double* out) const;
  double tree_score(std::size_t row, const double* values) const;

  const table::Table& table_;
  const criterion::Targets& targets_;
  const forest::Forest& forest_;
  const ForestOptions& options_;
  OutOfBag& out_;
  std::size_t width_ = 1;
  bool ordered_ = false;  // some rows determine the order of categories
  std::size_t first_importance_ = 0;
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::map<std::size_t, Report> waiting_;
  std::vector<std::uint8_t> is_right_;
  std::size_t n_right_ = 0;
  std::size_t n_seen_ = 0;
};

}  // namespace spinney::ensemble
