// What searches share whose nodes own their rows and nothing else.
#pragma once

#include <algorithm>

#include "spinney/tree/column_draw.h"
#include "spinney/tree/search.h"

namespace spinney::tree {

class RowSearch : public Search {
 public:
  explicit RowSearch(SearchInputs inputs) : in_(std::move(inputs)) {
    n_drawn_ = in_.n_features_drawn();
    in_.criterion.load(in_.rows.data(), static_cast<common::Row>(in_.rows.size()), targets_);
  }

  std::vector<common::Row>& rows() override { return in_.rows; }
  void open(Node&) override {}
  void divide_columns(const Node&, Node&, Node&, Worker&, int) override {}
  void sum(const Node& node, double* stat) const override { in_.criterion.sum(span(node), stat); }

 protected:
  // From this many rows on a column is read from the top to the bottom of the table: the rows of
  // the node lie close together there.
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

  // Stably moves the rows for which goes_left(row) holds, and their targets, to the front; returns
  // how many they are.
  template <class GoesLeft>
  common::Row divide_by(const Node& node, Worker& worker, const GoesLeft& goes_left) {
    const common::Row n = node.n_rows();
    common::Row* const rows = in_.rows.data() + node.begin;
    if (worker.rows.size() < n) worker.rows.resize(n);
    common::Row* const spare = worker.rows.data();
    common::Row n_left = 0;
    const auto divide = [&](auto* targets, auto& spare_targets) {
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
      divide(targets_.packed.data() + node.begin, worker.targets.packed);
    } else if (!targets_.means.empty()) {
      divide(targets_.means.data() + node.begin, worker.targets.means);
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
  criterion::RowTargets targets_;
  std::size_t n_drawn_ = 0;
};

}  // namespace spinney::tree
