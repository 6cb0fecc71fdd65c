#include "spinney/ensemble/out_of_bag.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "spinney/common/random.h"
#include "spinney/ensemble/category_order.h"
#include "spinney/forest/traversal.h"
#include "spinney/serving/forest_reader.h"

namespace spinney::ensemble {

using common::Row;

namespace {

constexpr std::size_t block_rows = 1024;

// Copies rows of a table side by side.
void copy_rows(const table::Table& table, const Row* rows, std::size_t n, double* out) {
  const std::size_t width = table.n_features();
  if (table.is_row_major()) {
    const table::Column& head = table.columns[0];
    const auto copy = [&]<class Value>(const Value*) {
      for (std::size_t i = 0; i < n; ++i) {
        const auto* row = reinterpret_cast<const Value*>(
            head.data + static_cast<std::ptrdiff_t>(rows[i]) * head.stride);
        for (std::size_t f = 0; f < width; ++f) out[i * width + f] = static_cast<double>(row[f]);
      }
    };
    if (head.dtype == table::Dtype::float64) {
      copy(static_cast<const double*>(nullptr));
    } else {
      copy(static_cast<const float*>(nullptr));
    }
    return;
  }
  for (std::size_t f = 0; f < width; ++f) {
    for (std::size_t i = 0; i < n; ++i) out[i * width + f] = table.columns[f].value(rows[i]);
  }
}

}  // namespace

OutOfBagTally::OutOfBagTally(const table::Table& table, const criterion::Targets& targets,
                             const forest::Forest& forest, const ForestOptions& options,
                             OutOfBag& out)
    : table_(table), targets_(targets), forest_(forest), options_(options), out_(out) {
  width_ = forest.shape.width();
  ordered_ = !options.tree.random_splits && has_ordered_categories(table);
  if (options.importance != Importance::none) {
    first_importance_ = out.importances.size();
    out.importances.resize(first_importance_ + options.n_trees * forest.n_features());
  }
  if (!options.out_of_bag) return;
  out.sums.resize(targets.n_rows * width_);
  if (!criterion::is_classification(forest.shape.criterion)) {
    out.squares.resize(targets.n_rows * width_);
  }
  out.n_trees.resize(targets.n_rows);
  is_right_.resize(targets.n_rows);
  for (std::size_t row = 0; row < targets.n_rows; ++row) {
    if (out.n_trees[row] == 0) continue;
    ++n_seen_;
    is_right_[row] = is_right(row);
    n_right_ += is_right_[row];
  }
}

void OutOfBagTally::add(std::size_t index, const forest::Tree& grown,
                        const forest::CompactTree& tree, const std::uint32_t* counts) {
  if (!options_.out_of_bag && options_.importance == Importance::none) return;
  Report report;
  const bool some = !options_.followed.empty() && options_.importance == Importance::none;
  const std::size_t n_candidates = some ? options_.followed.size() : targets_.n_rows;
  for (std::size_t i = 0; i < n_candidates; ++i) {
    const std::size_t row = some ? options_.followed[i] : i;
    if (counts == nullptr || counts[row] > 0) continue;
    if (ordered_ && determines_order(seed_of(options_, index), static_cast<Row>(row))) continue;
    report.rows.push_back(static_cast<Row>(row));
  }
  if (options_.importance != Importance::none) importances(index, grown, tree, report.rows);
  if (!options_.out_of_bag) return;
  const std::size_t n = report.rows.size();
  report.values.resize(n * width_);
  std::vector<double> values(std::min(n, block_rows) * table_.n_features());
  std::vector<std::uint32_t> leaves(std::min(n, block_rows));
  for (std::size_t first = 0; first < n; first += block_rows) {
    const std::size_t m = std::min(block_rows, n - first);
    copy_rows(table_, report.rows.data() + first, m, values.data());
    serving::descend(tree, values.data(), table_.n_features(), m, true, leaves.data());
    for (std::size_t i = 0; i < m; ++i) {
      serving::add_leaf(tree, forest_.shape, options_.hard_votes, leaves[i],
                        report.values.data() + (first + i) * width_);
    }
  }
  const std::lock_guard lock(mutex_);
  waiting_.emplace(index, std::move(report));
  for (auto at = waiting_.find(next_); at != waiting_.end(); at = waiting_.find(++next_)) {
    count(at->second);
    waiting_.erase(at);
  }
}

void OutOfBagTally::count(const Report& report) {
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const std::size_t row = report.rows[i];
    n_right_ -= is_right_[row];
    n_seen_ += out_.n_trees[row] == 0;
    ++out_.n_trees[row];
    for (std::size_t k = 0; k < width_; ++k) {
      const double value = report.values[i * width_ + k];
      out_.sums[row * width_ + k] += value;
      if (out_.squares.empty()) continue;
      const double off = value - (options_.centre.empty() ? 0.0 : options_.centre[k]);
      out_.squares[row * width_ + k] += off * off;
    }
    is_right_[row] = is_right(row);
    n_right_ += is_right_[row];
  }
  out_.curve.push_back(score());
}

// Whether all outputs of a row have the right class; false for regression.
bool OutOfBagTally::is_right(std::size_t row) const {
  if (!criterion::is_classification(forest_.shape.criterion)) return false;
  const std::size_t stride = width_ / targets_.n_outputs;
  for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
    const double* sums = out_.sums.data() + row * width_ + o * stride;
    const auto best =
        static_cast<std::uint32_t>(std::max_element(sums, sums + targets_.n_classes[o]) - sums);
    if (best != targets_.labels[o * targets_.n_rows + row]) return false;
  }
  return true;
}

double OutOfBagTally::score() const {
  if (n_seen_ == 0) return std::numeric_limits<double>::quiet_NaN();
  if (criterion::is_classification(forest_.shape.criterion)) {
    return static_cast<double>(n_right_) / static_cast<double>(n_seen_);
  }
  // R², averaged over the outputs.
  double total = 0;
  for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
    const double* y = targets_.values + o * targets_.n_rows;
    double mean = 0;
    for (std::size_t row = 0; row < targets_.n_rows; ++row) {
      if (out_.n_trees[row] > 0) mean += y[row];
    }
    mean /= static_cast<double>(n_seen_);
    double residual = 0;
    double spread = 0;
    for (std::size_t row = 0; row < targets_.n_rows; ++row) {
      if (out_.n_trees[row] == 0) continue;
      const double guess = out_.sums[row * width_ + o] / static_cast<double>(out_.n_trees[row]);
      residual += (y[row] - guess) * (y[row] - guess);
      spread += (y[row] - mean) * (y[row] - mean);
    }
    // As in scikit-learn: 1 if a constant target is predicted, else 0.
    total += spread > 0 ? 1 - residual / spread : (residual > 0 ? 0.0 : 1.0);
  }
  return total / static_cast<double>(targets_.n_outputs);
}

void OutOfBagTally::importances(std::size_t index, const forest::Tree& grown,
                                const forest::CompactTree& tree,
                                const std::vector<Row>& rows) const {
  double* const out = out_.importances.data() + first_importance_ + index * forest_.n_features();
  if (rows.empty()) return;
  if (options_.importance == Importance::corrected) {
    corrected(grown, rows, out);
  } else {
    permutation(tree, seed_of(options_, index), rows, out);
  }
}

// The impurity decrease on out-of-bag rows (Li, Wang, Basu, Kumbier, Yu 2019). Each row adds to
// every split on its path the difference between the child's value and the node's, times the
// difference between its target and the mean target of such rows in the node. The expected
// importance of an irrelevant column is zero. The mean is not the tree's: rows drawn twice pull the
// node's value towards them, and are missing among the out-of-bag rows on their side.
void OutOfBagTally::corrected(const forest::Tree& grown, const std::vector<Row>& rows,
                              double* out) const {
  const bool classes = criterion::is_classification(forest_.shape.criterion);
  const std::size_t stride = width_ / targets_.n_outputs;
  std::vector<double> count(grown.size());
  std::vector<double> sum(grown.size() * width_);  // of targets, or how many have each class
  for (const Row row : rows) {
    const std::size_t node = forest::find_leaf(
        grown, [&](std::size_t feature) { return table_.columns[feature].value(row); });
    count[node] += 1;
    for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
      if (classes) {
        sum[node * width_ + o * stride + targets_.labels[o * targets_.n_rows + row]] += 1;
      } else {
        // Relative to the root's value, so that a constant costs no digits.
        sum[node * width_ + o] += targets_.values[o * targets_.n_rows + row] - grown.value[o];
      }
    }
  }
  for (std::size_t node = grown.size(); node-- > 0;) {  // children come after their parents
    if (grown.left[node] == forest::no_child) continue;
    const std::size_t children[] = {static_cast<std::size_t>(grown.left[node]),
                                    static_cast<std::size_t>(grown.right[node])};
    for (const std::size_t child : children) {
      count[node] += count[child];
      for (std::size_t k = 0; k < width_; ++k) {
        sum[node * width_ + k] += sum[child * width_ + k];
      }
    }
    if (!(count[node] > 0)) continue;
    double total = 0;
    for (const std::size_t child : children) {
      for (std::size_t k = 0; k < width_; ++k) {
        const double mean = sum[node * width_ + k] / count[node];
        total += (grown.value[child * width_ + k] - grown.value[node * width_ + k]) *
                 (sum[child * width_ + k] - count[child] * mean);
      }
    }
    out[grown.feature[node]] += total;
  }
  for (std::size_t f = 0; f < forest_.n_features(); ++f) {
    out[f] /= static_cast<double>(rows.size() * targets_.n_outputs);
  }
}

// Classification: fraction of correct outputs. Regression: minus the squared error.
double OutOfBagTally::tree_score(std::size_t row, const double* values) const {
  const std::size_t stride = width_ / targets_.n_outputs;
  double total = 0;
  for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
    if (criterion::is_classification(forest_.shape.criterion)) {
      const double* of_output = values + o * stride;
      const auto best = static_cast<std::uint32_t>(
          std::max_element(of_output, of_output + targets_.n_classes[o]) - of_output);
      total += best == targets_.labels[o * targets_.n_rows + row] ? 1 : 0;
    } else {
      const double error = targets_.values[o * targets_.n_rows + row] - values[o];
      total -= error * error;
    }
  }
  return total / static_cast<double>(targets_.n_outputs);
}

// The loss of score on out-of-bag rows when a column is shuffled (Breiman 2001).
void OutOfBagTally::permutation(const forest::CompactTree& tree, std::uint64_t seed,
                                const std::vector<Row>& rows, double* out) const {
  const std::size_t n = rows.size();
  const std::size_t n_features = table_.n_features();
  std::vector<std::uint8_t> used(n_features);
  for (const forest::CompactNode& node : tree.nodes)
    used[node.feature & forest::CompactNode::feature_mask] = 1;
  std::vector<double> values(std::min(n, block_rows) * n_features);
  std::vector<std::uint32_t> leaves(std::min(n, block_rows));
  std::vector<std::uint32_t> shuffled_leaves(leaves.size());
  std::vector<double> leaf(width_);
  std::vector<Row> shuffled(rows);
  const auto score_of = [&](std::uint32_t at, Row row) {
    std::fill(leaf.begin(), leaf.end(), 0.0);
    serving::add_leaf(tree, forest_.shape, false, at, leaf.data());
    return tree_score(row, leaf.data());
  };
  // One permutation for all columns of a tree, which are shuffled one at a time.
  common::Stream stream(seed, common::Purpose::shuffles, 0);
  for (std::size_t i = n; i > 1; --i) {
    std::swap(shuffled[i - 1], shuffled[static_cast<std::size_t>(stream.below(i))]);
  }
  for (std::size_t first = 0; first < n; first += block_rows) {
    const std::size_t m = std::min(block_rows, n - first);
    copy_rows(table_, rows.data() + first, m, values.data());
    serving::descend(tree, values.data(), n_features, m, true, leaves.data());
    for (std::size_t f = 0; f < n_features; ++f) {
      if (used[f] == 0) continue;
      const table::Column& column = table_.columns[f];
      for (std::size_t i = 0; i < m; ++i) {
        values[i * n_features + f] = column.value(shuffled[first + i]);
      }
      serving::descend(tree, values.data(), n_features, m, true, shuffled_leaves.data());
      for (std::size_t i = 0; i < m; ++i) {
        if (shuffled_leaves[i] != leaves[i]) {
          const Row row = rows[first + i];
          out[f] += score_of(leaves[i], row) - score_of(shuffled_leaves[i], row);
        }
        values[i * n_features + f] = column.value(rows[first + i]);
      }
    }
  }
  for (std::size_t f = 0; f < n_features; ++f) out[f] /= static_cast<double>(n);
}

}  // namespace spinney::ensemble
