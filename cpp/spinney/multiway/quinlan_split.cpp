#include "spinney/multiway/quinlan_split.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "spinney/common/check.h"
#include "spinney/common/log.h"

namespace spinney::multiway {

using common::Code;

namespace {

constexpr double rounding = 1e-9;

double log2_of(double x) { return common::log(x) * 1.4426950408889634; }
double times_log2(double x) { return x > 0 ? x * log2_of(x) : 0.0; }

// Searches the thresholds of a numeric column in ascending order.
class ThresholdSearch {
 public:
  ThresholdSearch(const double* known_counts, std::size_t n_classes, double known, double all,
                  const QuinlanOptions& options, QuinlanScratch& scratch)
      : n_classes_(n_classes), known_(known), all_(all), low_(scratch.low), high_(scratch.high) {
    low_.assign(n_classes, 0.0);
    high_.assign(known_counts, known_counts + n_classes);
    base_ = total_info(known_counts, n_classes);
    // Each side needs a minimum weight: small groups at the ends rarely generalise.
    min_side_ = 0.1 * known / static_cast<double>(n_classes);
    min_side_ = options.min_samples_branch > 0
                    ? std::clamp(min_side_, options.min_samples_branch,
                                 std::max(options.min_samples_branch, 25.0))
                    : 0.0;
  }

  void move(std::size_t label, double weight) {
    low_[label] += weight;
    high_[label] -= weight;
    low_weight_ += weight;
  }
  bool too_few() const { return low_weight_ < min_side_ - rounding; }
  bool too_many() const { return known_ - low_weight_ < min_side_ - rounding; }

  // Evaluates the cut between `code` and the next code `above`.
  void evaluate(Code code, Code above) {
    ++n_tries_;
    for (double& sum : high_) sum = std::max(sum, 0.0);
    const double left = total_info(low_.data(), n_classes_);
    const double gain = (base_ - left - total_info(high_.data(), n_classes_)) / all_;
    if (!(gain > best_gain_ + 1e-12)) return;
    best_gain_ = gain;
    below_ = code;
    above_ = above;
    best_low_weight_ = low_weight_;
  }

  void write_split(const QuinlanColumn& column, const QuinlanOptions& options,
                   QuinlanSplit& split) const {
    if (n_tries_ == 0) return;
    const double cost =
        options.threshold_cost ? log2_of(static_cast<double>(n_tries_)) / all_ : 0.0;
    split.gain = best_gain_ - cost;
    if (!(split.gain > 0)) return;
    const double parts[3] = {best_low_weight_, known_ - best_low_weight_, all_ - known_};
    split.info = total_info(parts, 3) / all_;
    split.n_branches = 2;
    split.found = true;
    // The largest value in the data up to the midpoint.
    const double middle = column.values[below_] / 2 + column.values[above_] / 2;
    const auto first = column.values.begin() + below_ + 1;
    const auto last = column.values.begin() + above_;
    split.threshold = *(std::upper_bound(first, last, middle) - 1);
  }

 private:
  std::size_t n_classes_;
  double known_;
  double all_;
  std::vector<double>& low_;
  std::vector<double>& high_;
  double base_ = 0;
  double min_side_ = 0;
  double low_weight_ = 0;
  double best_low_weight_ = 0;
  std::size_t n_tries_ = 0;
  double best_gain_ = 0;
  Code below_ = 0;
  Code above_ = 0;
};

void find_threshold(const QuinlanRows& rows, const QuinlanItems& items, const MultiwayNode& node,
                    std::size_t feature, const QuinlanOptions& options, QuinlanScratch& scratch,
                    QuinlanSplit& split) {
  const QuinlanColumn& column = rows.columns[feature];
  const std::size_t n_classes = rows.n_classes;
  std::vector<double> counts = node.counts;
  double known = node.weight;
  if (column.has_missing) {
    counts.assign(n_classes, 0.0);
    known = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (column.codes[items.rows[i]] == column.missing_code) continue;
      counts[rows.labels[items.rows[i]]] += items.weights[i];
      known += items.weights[i];
    }
  }
  if (known < 2 * options.min_samples_branch - rounding || known == 0) return;
  ThresholdSearch cuts(counts.data(), n_classes, known, node.weight, options, scratch);
  const std::size_t n_codes = column.values.size();
  if (n_codes * n_classes <= 2 * items.size()) {  // few codes: a histogram instead of a sort
    scratch.sums.assign((n_codes + 1) * n_classes, 0.0);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const common::Row row = items.rows[i];
      scratch.sums[column.codes[row] * n_classes + rows.labels[row]] += items.weights[i];
    }
    bool has_below = false;
    Code below = 0;
    for (Code code = 0; code < n_codes; ++code) {
      const double* const sums = scratch.sums.data() + code * n_classes;
      if (std::all_of(sums, sums + n_classes, [](double sum) { return sum == 0; })) continue;
      if (has_below && !cuts.too_few()) {
        if (cuts.too_many()) break;
        cuts.evaluate(below, code);
      }
      for (std::size_t k = 0; k < n_classes; ++k) {
        if (sums[k] != 0) cuts.move(k, sums[k]);
      }
      has_below = true;
      below = code;
    }
  } else {
    std::vector<std::uint64_t>& keys = scratch.keys;
    keys.clear();
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Code code = column.codes[items.rows[i]];
      if (code != column.missing_code) keys.push_back((std::uint64_t{code} << 32) | i);
    }
    std::sort(keys.begin(), keys.end());
    for (std::size_t j = 0; j < keys.size(); ++j) {
      const auto code = static_cast<Code>(keys[j] >> 32);
      if (j > 0 && code != static_cast<Code>(keys[j - 1] >> 32) && !cuts.too_few()) {
        if (cuts.too_many()) break;
        cuts.evaluate(static_cast<Code>(keys[j - 1] >> 32), code);
      }
      const auto i = static_cast<std::size_t>(keys[j] & 0xffffffffULL);
      cuts.move(rows.labels[items.rows[i]], items.weights[i]);
    }
  }
  cuts.write_split(column, options, split);
}

// Groups of categories: one branch each.
struct Groups {
  std::vector<std::vector<double>> counts;  // class weights
  std::vector<double> weights;
  std::vector<std::vector<std::int32_t>> codes;
  double missing = 0;
  double known_info = 0;  // of the rows without missing value, before the split
  double all = 0;

  double gain() const {
    double left = 0;
    for (const std::vector<double>& of_group : counts) {
      left += total_info(of_group.data(), of_group.size());
    }
    return (known_info - left) / all;
  }
  double info() const {
    std::vector<double> parts = weights;
    parts.push_back(missing);
    return total_info(parts.data(), parts.size()) / all;
  }
  std::size_t n_large(double min_weight) const {
    return static_cast<std::size_t>(std::count_if(
        weights.begin(), weights.end(),
        [&](double weight) { return weight > 0 && weight >= min_weight - rounding; }));
  }
  void merge(std::size_t a, std::size_t b) {
    for (std::size_t k = 0; k < counts[a].size(); ++k) counts[a][k] += counts[b][k];
    weights[a] += weights[b];
    codes[a].insert(codes[a].end(), codes[b].begin(), codes[b].end());
    const auto at = static_cast<std::ptrdiff_t>(b);
    counts.erase(counts.begin() + at);
    weights.erase(weights.begin() + at);
    codes.erase(codes.begin() + at);
  }
};

// Repeatedly merges the pair with the best gain ratio, while the ratio does not decrease.
void merge_branches(Groups& groups, double min_weight) {
  const auto terms = [](const std::vector<double>& counts) {
    return total_info(counts.data(), counts.size());
  };
  while (groups.weights.size() > 2) {
    const double gain = groups.gain();
    const double info = groups.info();
    double best = groups.n_large(min_weight) < 2 ? -1.0 : gain / info - rounding;
    std::size_t best_a = 0;
    std::size_t best_b = 0;
    for (std::size_t a = 0; a < groups.weights.size(); ++a) {
      for (std::size_t b = a + 1; b < groups.weights.size(); ++b) {
        std::vector<double> together = groups.counts[a];
        for (std::size_t k = 0; k < together.size(); ++k) together[k] += groups.counts[b][k];
        const double lost =
            (terms(together) - terms(groups.counts[a]) - terms(groups.counts[b])) / groups.all;
        const double sum = groups.weights[a] + groups.weights[b];
        const double less =
            (times_log2(sum) - times_log2(groups.weights[a]) - times_log2(groups.weights[b])) /
            groups.all;
        const double left = info - less;
        const double ratio = left > rounding ? (gain - lost) / left : 0.0;
        if (ratio <= best) continue;
        best = ratio;
        best_a = a;
        best_b = b;
      }
    }
    if (best_a == best_b) return;
    groups.merge(best_a, best_b);
  }
}

void find_branches(const QuinlanRows& rows, const QuinlanItems& items, const MultiwayNode& node,
                   std::size_t feature, const QuinlanOptions& options, QuinlanScratch& scratch,
                   QuinlanSplit& split) {
  const QuinlanColumn& column = rows.columns[feature];
  const std::size_t n_classes = rows.n_classes;
  const std::size_t n_codes = column.n_branch_codes;
  scratch.sums.assign((std::size_t{column.missing_code} + 1) * n_classes, 0.0);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const common::Row row = items.rows[i];
    scratch.sums[column.codes[row] * n_classes + rows.labels[row]] += items.weights[i];
  }
  Groups groups;
  groups.all = node.weight;
  std::vector<double> counts(n_classes);
  double known = 0;
  for (std::size_t code = 0; code < n_codes; ++code) {
    const double* const sums = scratch.sums.data() + code * n_classes;
    double weight = 0;
    for (std::size_t k = 0; k < n_classes; ++k) {
      weight += sums[k];
      counts[k] += sums[k];
    }
    if (weight == 0) continue;
    known += weight;
    groups.counts.emplace_back(sums, sums + n_classes);
    groups.weights.push_back(weight);
    groups.codes.push_back({static_cast<std::int32_t>(code)});
  }
  if (groups.weights.size() < 2) return;
  groups.missing = std::max(node.weight - known, 0.0);
  groups.known_info = total_info(counts.data(), n_classes);
  if (options.group_categories) merge_branches(groups, options.min_samples_branch);
  if (groups.n_large(options.min_samples_branch) < 2) return;
  split.gain = groups.gain();
  split.info = groups.info();
  split.found = true;
  // Categories absent from the node: a branch each if categories are not grouped, otherwise none.
  split.branch_of.assign(n_codes, -1);
  if (options.group_categories) {
    for (std::size_t g = 0; g < groups.codes.size(); ++g) {
      for (const std::int32_t code : groups.codes[g]) {
        split.branch_of[static_cast<std::size_t>(code)] = static_cast<std::int32_t>(g);
      }
    }
    split.n_branches = groups.codes.size();
    return;
  }
  for (std::size_t code = 0; code < n_codes; ++code) {
    split.branch_of[code] = static_cast<std::int32_t>(code);
  }
  split.n_branches = n_codes;
}

}  // namespace

void QuinlanOptions::check() const {
  common::require_at_least("min_samples_branch", min_samples_branch, 0.0);
  common::require_at_least("min_gain", min_gain, 0.0);
  common::require_at_least<std::int64_t>("max_depth", max_depth, 0);
  common::require_at_least("n_threads", n_threads, 1);
  if (!(confidence > 0 && confidence < 1)) {
    throw common::InputError("confidence must be between 0 and 1; got " +
                             std::to_string(confidence));
  }
}

double total_info(const double* counts, std::size_t n) {
  double sum = 0;
  double parts = 0;
  for (std::size_t k = 0; k < n; ++k) {
    sum += counts[k];
    parts += times_log2(counts[k]);
  }
  return times_log2(sum) - parts;
}

QuinlanSplit find_split(const QuinlanRows& rows, const QuinlanItems& items,
                        const MultiwayNode& node, std::size_t feature,
                        const QuinlanOptions& options, QuinlanScratch& scratch) {
  QuinlanSplit split;
  if (rows.columns[feature].categorical) {
    find_branches(rows, items, node, feature, options, scratch, split);
  } else {
    find_threshold(rows, items, node, feature, options, scratch, split);
  }
  return split;
}

}  // namespace spinney::multiway
