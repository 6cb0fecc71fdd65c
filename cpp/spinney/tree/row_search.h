// Base of searches whose nodes own only a list of rows: sampled and random.
#pragma once

#include <algorithm>

#include "spinney/tree/column_draw.h"
#include "spinney/tree/search.h"

namespace spinney::tree {

class RowSearch : public Search {
 public:
  explicit RowSearch(SearchInputs inputs) : in_(std::move(inputs)) {
    n_drawn_ = in_.n_features_drawn();
    lanes_ = in_.criterion.lanes();
    if (lanes_ == nullptr) return;
    lanes_->load(in_.rows.data(), static_cast<common::Row>(in_.rows.size()), targets_);
  }

  std::vector<common::Row>& rows() override { return in_.rows; }
  void open(Node&) override {}
  void partition_columns(const Node&, Node&, Node&, Worker&, int) override {}
  void sum(const Node& node, double* stat) const override {
    if (lanes_ != nullptr) return lanes_->sum_rows(span(node), stat);
    in_.criterion.sum(in_.rows.data() + node.begin, node.n_rows(), stat);
  }

 protected:
  // Whether to read by column instead of by row: the rows of a large node are close together in a
  // column.
  bool reads_columns(common::Row n) const {
    return n > criterion::max_lane_rows && 16 * static_cast<std::size_t>(n) > in_.table.n_rows;
  }

  criterion::RowSpan span(const Node& node) const {
    return {in_.rows.data() + node.begin,
            targets_.packed.empty() ? nullptr : targets_.packed.data() + node.begin,
            targets_.means.empty() ? nullptr : targets_.means.data() + node.begin, node.n_rows()};
  }

  common::Row margin() const {
    return static_cast<common::Row>(std::max<std::int64_t>(1, in_.options.min_samples_leaf));
  }

  // Moves the rows with goes_left(row), and their targets, to the front; keeps the order on both
  // sides. Returns the number of rows on the left.
  template <class GoesLeft>
  common::Row partition_by(const Node& node, Worker& worker, const GoesLeft& goes_left) {
    const common::Row n = node.n_rows();
    common::Row* const rows = in_.rows.data() + node.begin;
    if (worker.rows.size() < n) worker.rows.resize(n);
    common::Row* const spare = worker.rows.data();
    common::Row n_left = 0;
    const auto partition = [&](auto* targets, auto& spare_targets) {
      if (spare_targets.size() < n) spare_targets.resize(n);
      auto* const spare_target = spare_targets.data();
      for (common::Row i = 0; i < n; ++i) {
        const common::Row row = rows[i];
        const auto target = targets[i];
        rows[n_left] = row;
        targets[n_left] = target;
        spare[i - n_left] = row;
        spare_target[i - n_left] = target;
        n_left += goes_left(row) ? 1 : 0;
      }
      std::copy(spare_target, spare_target + (n - n_left), targets + n_left);
    };
    if (!targets_.packed.empty()) {
      partition(targets_.packed.data() + node.begin, worker.targets.packed);
    } else if (!targets_.means.empty()) {
      partition(targets_.means.data() + node.begin, worker.targets.means);
    } else {
      for (common::Row i = 0; i < n; ++i) {
        const common::Row row = rows[i];
        rows[n_left] = row;
        spare[i - n_left] = row;
        n_left += goes_left(row) ? 1 : 0;
      }
    }
    std::copy(spare, spare + (n - n_left), rows + n_left);
    return n_left;
  }

  SearchInputs in_;
  const criterion::LaneCriterion* lanes_ = nullptr;
  criterion::RowTargets targets_;
  std::size_t n_drawn_ = 0;
};

}  // namespace spinney::tree
