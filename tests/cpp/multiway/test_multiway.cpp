// Compares ID3, C4.5, pruning and rule simplification with slow versions on raw rows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/multiway/error_pruner.h"
#include "spinney/multiway/quinlan_grower.h"
#include "spinney/multiway/rule_simplifier.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::multiway;
using common::Row;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Data {
  std::size_t n = 0;
  std::vector<std::vector<double>> x;            // NaN: missing; categories as codes
  std::vector<std::vector<std::int32_t>> codes;  // empty: numeric
  std::vector<std::uint32_t> labels;
  std::uint32_t n_classes = 2;
  std::vector<double> weights;

  static constexpr std::int32_t n_categories = 3;

  table::Table table() const {
    table::Table out;
    out.n_rows = n;
    for (std::size_t f = 0; f < x.size(); ++f) {
      table::Column column;
      if (codes[f].empty()) {
        column.data = reinterpret_cast<const std::byte*>(x[f].data());
        column.stride = sizeof(double);
      } else {
        column.kind = table::ColumnKind::categorical;
        column.dtype = table::Dtype::int32;
        column.data = reinterpret_cast<const std::byte*>(codes[f].data());
        column.stride = sizeof(std::int32_t);
        column.n_categories = n_categories;
      }
      out.columns.push_back(column);
    }
    return out;
  }
  criterion::Targets targets() const {
    criterion::Targets out;
    out.n_rows = n;
    out.n_classes = {n_classes};
    out.labels = labels.data();
    out.weights = weights.empty() ? nullptr : weights.data();
    return out;
  }
};

Data draw(std::size_t n, std::size_t n_numeric, std::size_t n_categorical, std::uint32_t n_classes,
          bool missing, bool weighted, std::uint64_t seed) {
  common::Stream stream(seed, common::Purpose::rows, n);
  Data data;
  data.n = n;
  data.n_classes = n_classes;
  for (std::size_t f = 0; f < n_numeric + n_categorical; ++f) {
    data.x.emplace_back();
    data.codes.emplace_back();
    for (std::size_t i = 0; i < n; ++i) {
      const bool is_missing = missing && stream.below(6) == 0;
      const auto value = static_cast<double>(
          stream.below(f < n_numeric ? 12 : static_cast<std::uint64_t>(Data::n_categories)));
      data.x[f].push_back(is_missing ? nan : value);
      if (f >= n_numeric) {
        data.codes[f].push_back(is_missing ? -1 : static_cast<std::int32_t>(value));
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    // Two columns matter, with noise.
    const double signal = (std::isnan(data.x[0][i]) ? 0 : data.x[0][i]) +
                          (std::isnan(data.x.back()[i]) ? 0 : 4 * data.x.back()[i]);
    data.labels.push_back(stream.below(4) == 0
                              ? static_cast<std::uint32_t>(stream.below(n_classes))
                              : static_cast<std::uint32_t>(signal / 6) % n_classes);
    if (weighted) data.weights.push_back(0.5 + static_cast<double>(stream.below(4)));
  }
  return data;
}

struct Item {
  Row row;
  double weight;
};

std::vector<Item> all_items(const Data& data) {
  std::vector<Item> items;
  for (std::size_t i = 0; i < data.n; ++i) {
    items.push_back({static_cast<Row>(i), data.weights.empty() ? 1.0 : data.weights[i]});
  }
  return items;
}

double total(const std::vector<Item>& items) {
  double sum = 0;
  for (const Item& item : items) sum += item.weight;
  return sum;
}

std::vector<double> class_weights(const Data& data, const std::vector<Item>& items) {
  std::vector<double> counts(data.n_classes);
  for (const Item& item : items) counts[data.labels[item.row]] += item.weight;
  return counts;
}

double entropy(const std::vector<double>& parts) {
  double sum = 0;
  for (const double part : parts) sum += part;
  double out = 0;
  for (const double part : parts) {
    if (part > 0) out -= part / sum * std::log2(part / sum);
  }
  return out;
}

// Rows by branch, without missing values, which are the last element.
std::vector<std::vector<Item>> branches_of(const Data& data, const std::vector<Item>& items,
                                           std::size_t f, double threshold) {
  const bool categorical = !data.codes[f].empty();
  const std::size_t n = categorical ? static_cast<std::size_t>(Data::n_categories) : 2;
  std::vector<std::vector<Item>> out(n + 1);
  for (const Item& item : items) {
    const double value = data.x[f][item.row];
    std::size_t branch = n;
    if (!std::isnan(value)) {
      branch = categorical ? static_cast<std::size_t>(value) : (value <= threshold ? 0 : 1);
    }
    out[branch].push_back(item);
  }
  return out;
}

struct Gain {
  bool found = false;
  double gain = 0;
  double info = 0;
  double threshold = nan;
};

Gain gain_of(const Data& data, const std::vector<Item>& items, std::size_t f, double threshold) {
  std::vector<std::vector<Item>> branches = branches_of(data, items, f, threshold);
  std::vector<Item> known;
  std::vector<double> parts;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    parts.push_back(total(branches[b]));
    if (b + 1 < branches.size()) known.insert(known.end(), branches[b].begin(), branches[b].end());
  }
  Gain out;
  double after = 0;
  for (std::size_t b = 0; b + 1 < branches.size(); ++b) {
    if (parts[b] > 0) after += parts[b] * entropy(class_weights(data, branches[b]));
  }
  out.gain = (total(known) * entropy(class_weights(data, known)) - after) / total(items);
  out.info = entropy(parts);
  return out;
}

Gain best_gain(const Data& data, const std::vector<Item>& items, std::size_t f,
               const QuinlanOptions& options) {
  if (!data.codes[f].empty()) {
    Gain out = gain_of(data, items, f, nan);
    std::size_t n_used = 0;
    std::size_t n_large = 0;
    std::vector<std::vector<Item>> branches = branches_of(data, items, f, nan);
    branches.pop_back();
    for (const std::vector<Item>& branch : branches) {
      n_used += branch.empty() ? 0 : 1;
      n_large += !branch.empty() && total(branch) >= options.min_samples_branch ? 1 : 0;
    }
    out.found = n_used >= 2 && n_large >= 2;
    return out;
  }
  std::vector<double> values;
  double known = 0;
  for (const Item& item : items) {
    if (std::isnan(data.x[f][item.row])) continue;
    values.push_back(data.x[f][item.row]);
    known += item.weight;
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (known < 2 * options.min_samples_branch) return {};
  double min_side = 0.1 * known / data.n_classes;
  min_side =
      std::clamp(min_side, options.min_samples_branch, std::max(options.min_samples_branch, 25.0));
  Gain best;
  std::size_t n_tries = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const auto branches = branches_of(data, items, f, values[i]);
    if (total(branches[0]) < min_side - 1e-9 || total(branches[1]) < min_side - 1e-9) continue;
    ++n_tries;
    Gain here = gain_of(data, items, f, values[i]);
    if (!best.found || here.gain > best.gain + 1e-12) {
      here.found = true;
      // The largest value of the data up to the midpoint.
      const double middle = (values[i] + values[i + 1]) / 2;
      here.threshold = values[i];
      for (const double value : data.x[f]) {
        if (value <= middle) here.threshold = std::max(here.threshold, value);
      }
      best = here;
    }
  }
  if (!best.found) return {};
  if (options.threshold_cost) {
    best.gain -= std::log2(static_cast<double>(n_tries)) / total(items);
  }
  best.found = best.gain > 0;
  return best;
}

// Rows by branch; rows with a missing value are in all branches, with weights by share.
std::vector<std::vector<Item>> route(const Data& data, const MultiwayNode& node,
                                     const std::vector<Item>& items) {
  auto branches = branches_of(data, items, static_cast<std::size_t>(node.feature), node.threshold);
  const std::vector<Item> missing = branches.back();
  branches.pop_back();
  double known = 0;
  std::vector<double> shares;
  for (const auto& branch : branches) {
    shares.push_back(total(branch));
    known += shares.back();
  }
  for (std::size_t b = 0; b < branches.size(); ++b) {
    if (shares[b] == 0) continue;
    for (const Item& item : missing) {
      branches[b].push_back({item.row, item.weight * shares[b] / known});
    }
  }
  return branches;
}

MultiwayTree grow(const Data& data, const QuinlanOptions& options) {
  common::Watch watch;
  return grow_quinlan_tree(data.table(), data.targets(), options, watch);
}

QuinlanOptions id3() {
  QuinlanOptions options;
  options.gain_ratio = false;
  options.missing_is_category = true;
  options.min_samples_branch = 0;
  options.collapse = options.prune = false;
  return options;
}

QuinlanOptions c45() {
  QuinlanOptions options;
  options.collapse = options.prune = false;
  return options;
}

// Checks the split of every node: its gain or gain ratio is the best that the options allow.
void check_node(const Data& data, const QuinlanOptions& options, const MultiwayTree& tree,
                std::size_t at, const std::vector<Item>& items, std::vector<bool> used) {
  const MultiwayNode& node = tree.nodes[at];
  const std::vector<double> counts = class_weights(data, items);
  CHECK_NEAR(node.weight, total(items), 1e-9);
  CHECK(node.n_rows == static_cast<std::int64_t>(items.size()));
  for (std::size_t k = 0; k < counts.size(); ++k) CHECK_NEAR(node.counts[k], counts[k], 1e-9);
  if (items.empty()) return;
  const bool may_split =
      total(items) >= 2 * options.min_samples_branch && items.size() >= 2 &&
      *std::max_element(counts.begin(), counts.end()) < total(items) * (1 - 1e-9);
  double average = 0;
  double n = 0;
  std::vector<Gain> gains(data.x.size());
  for (std::size_t f = 0; f < gains.size(); ++f) {
    if (!used[f]) gains[f] = best_gain(data, items, f, options);
    if (!gains[f].found) continue;
    average += gains[f].gain;
    n += 1;
  }
  average /= std::max(n, 1.0);
  const auto worth = [&](const Gain& gain) {
    if (!gain.found) return -1.0;
    if (!options.gain_ratio) return gain.gain;
    return gain.gain < average - 1e-3 || gain.info <= 1e-3 ? -1.0 : gain.gain / gain.info;
  };
  double best = -1;
  for (const Gain& gain : gains) best = std::max(best, worth(gain));
  if (node.is_leaf()) {
    CHECK(!may_split || best <= (options.gain_ratio ? 1e-9 : -1.0));
    return;
  }
  CHECK(may_split);
  const auto f = static_cast<std::size_t>(node.feature);
  CHECK(!used[f]);
  CHECK_NEAR(worth(gains[f]), best, 1e-9);
  if (data.codes[f].empty()) {
    CHECK(node.threshold == gains[f].threshold);
  } else {
    used[f] = true;
  }
  const auto branches = route(data, node, items);
  CHECK(node.children.size() == branches.size());
  for (std::size_t b = 0; b < branches.size(); ++b) {
    check_node(data, options, tree, static_cast<std::size_t>(node.children[b]), branches[b], used);
  }
}

double expected_errors(const Data& data, const std::vector<Item>& items, double confidence) {
  const std::vector<double> counts = class_weights(data, items);
  const double errors = total(items) - *std::max_element(counts.begin(), counts.end());
  return errors + extra_errors(total(items), errors, confidence);
}

struct SlowNode {
  std::int32_t feature = -2;
  double threshold = nan;
  std::vector<SlowNode> children;
};

SlowNode copy(const MultiwayTree& tree, std::size_t at) {
  SlowNode out;
  if (tree.nodes[at].is_leaf()) return out;
  out.feature = tree.nodes[at].feature;
  out.threshold = tree.nodes[at].threshold;
  for (const common::NodeIndex child : tree.nodes[at].children) {
    out.children.push_back(copy(tree, static_cast<std::size_t>(child)));
  }
  return out;
}

MultiwayNode split_of(const SlowNode& node) {
  MultiwayNode out;
  out.feature = node.feature;
  out.threshold = node.threshold;
  return out;
}

double estimate(const Data& data, const SlowNode& node, const std::vector<Item>& items,
                double confidence) {
  if (node.children.empty()) return expected_errors(data, items, confidence);
  const auto branches = route(data, split_of(node), items);
  double sum = 0;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    if (!branches[b].empty()) sum += estimate(data, node.children[b], branches[b], confidence);
  }
  return sum;
}

// C4.5's error-based pruning.
double prune(const Data& data, SlowNode& node, const std::vector<Item>& items, double confidence,
             bool subtree_raising) {
  const double leaf = expected_errors(data, items, confidence);
  if (node.children.empty()) return leaf;
  const auto branches = route(data, split_of(node), items);
  auto by_value = branches_of(data, items, static_cast<std::size_t>(node.feature), node.threshold);
  double subtree = 0;
  std::size_t largest = 0;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    if (branches[b].empty()) {
      node.children[b] = {};
      continue;
    }
    subtree += prune(data, node.children[b], branches[b], confidence, subtree_raising);
    if (total(by_value[b]) > total(by_value[largest]) + 1e-9) largest = b;
  }
  const SlowNode branch = node.children[largest];
  const bool can_raise = subtree_raising && !branch.children.empty();
  const double raised = can_raise ? estimate(data, branch, items, confidence) : leaf;
  if (leaf <= subtree + 0.1 && leaf <= raised + 0.1) {
    node = {};
    return leaf;
  }
  if (can_raise && raised <= subtree + 0.1) {
    node = SlowNode(branch);
    return prune(data, node, items, confidence, subtree_raising);
  }
  return subtree;
}

void check_same(const SlowNode& slow, const MultiwayTree& tree, std::size_t at) {
  const MultiwayNode& node = tree.nodes[at];
  CHECK(slow.children.size() == node.children.size());
  CHECK(slow.feature == node.feature);
  if (slow.children.size() != node.children.size()) return;
  for (std::size_t b = 0; b < slow.children.size(); ++b) {
    check_same(slow.children[b], tree, static_cast<std::size_t>(node.children[b]));
  }
}

}  // namespace

TEST(total_info_is_the_weighted_entropy) {
  const double counts[] = {3, 0, 5};
  const double expected = -3 * std::log2(3.0 / 8) - 5 * std::log2(5.0 / 8);
  CHECK_NEAR(total_info(counts, 3), expected, 1e-12);
  CHECK(total_info(counts, 1) == 0);
  CHECK(total_info(counts, 0) == 0);
}

TEST(id3_splits_have_the_largest_gain) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Data data = draw(40, 0, 4, 2 + seed % 2, false, seed % 3 == 0, seed);
    check_node(data, id3(), grow(data, id3()), 0, all_items(data), std::vector<bool>(4));
  }
}

TEST(c45_splits_have_the_best_gain_ratio) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Data data = draw(60, 2, 2, 2 + seed % 2, seed % 4 == 1, seed % 3 == 0, seed);
    QuinlanOptions options = c45();
    options.threshold_cost = seed % 5 != 0;
    options.min_samples_branch = seed % 7 == 0 ? 5 : 2;
    check_node(data, options, grow(data, options), 0, all_items(data), std::vector<bool>(4));
  }
}

TEST(root_splits_match_the_definition) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Data data = draw(50, 2, 2, 3, seed % 2 == 0, false, 100 + seed);
    const std::vector<QuinlanSplit> splits = find_root_splits(data.table(), data.targets(), c45());
    for (std::size_t f = 0; f < splits.size(); ++f) {
      const Gain expected = best_gain(data, all_items(data), f, c45());
      CHECK(splits[f].found == expected.found);
      if (!expected.found) continue;
      CHECK_NEAR(splits[f].gain, expected.gain, 1e-9);
      CHECK_NEAR(splits[f].info, expected.info, 1e-9);
    }
  }
}

TEST(grouped_categories_do_not_lower_the_gain_ratio) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Data data = draw(50, 0, 3, 2, false, false, 200 + seed);
    QuinlanOptions grouped = c45();
    grouped.group_categories = true;
    const auto plain = find_root_splits(data.table(), data.targets(), c45());
    const auto merged = find_root_splits(data.table(), data.targets(), grouped);
    for (std::size_t f = 0; f < plain.size(); ++f) {
      if (!plain[f].found) continue;
      CHECK(merged[f].found && merged[f].n_branches >= 2);
      CHECK(merged[f].ratio() >= plain[f].ratio() - 1e-9);
      CHECK(merged[f].gain <= plain[f].gain + 1e-9);
    }
  }
}

TEST(extra_errors_reach_the_confidence_limit) {
  for (const double confidence : {0.1, 0.25, 0.5}) {
    for (const double n : {1.0, 5.0, 14.5, 100.0}) {
      // No error: (1 − p)^n = confidence.
      const double p = extra_errors(n, 0, confidence) / n;
      CHECK_NEAR(std::pow(1 - p, n), confidence, 1e-12);
      const double one = extra_errors(n, 1, confidence);
      CHECK_NEAR(extra_errors(n, 0.5, confidence), (n * p + one) / 2, 1e-9);
    }
    for (const double e : {1.0, 3.0, 20.0}) {
      // P(Z > z) = confidence for z = (n p − e − 0.5) / √(n p (1 − p)).
      constexpr double n = 50;
      const double limit = e + extra_errors(n, e, confidence);
      const double z = (limit - e - 0.5) / std::sqrt(limit * (1 - limit / n));
      CHECK_NEAR(0.5 * std::erfc(z / std::sqrt(2.0)), confidence, 1e-9);
    }
  }
  CHECK(extra_errors(0, 0, 0.25) == 0);
  CHECK_NEAR(extra_errors(10, 10, 0.25), 0, 1e-12);
}

TEST(collapsing_keeps_the_training_errors) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Data data = draw(60, 2, 2, 3, seed % 2 == 0, false, 300 + seed);
    QuinlanOptions options = c45();
    options.collapse = true;
    const MultiwayTree tree = grow(data, options);
    std::vector<double> errors(tree.nodes.size());
    for (std::size_t i = tree.nodes.size(); i-- > 0;) {
      const MultiwayNode& node = tree.nodes[i];
      const double as_leaf = node.weight - node.majority_weight();
      if (node.is_leaf()) {
        errors[i] = as_leaf;
        continue;
      }
      for (const common::NodeIndex child : node.children) {
        errors[i] += errors[static_cast<std::size_t>(child)];
      }
      CHECK(errors[i] < as_leaf - 1e-4);
    }
  }
}

TEST(pruning_matches_a_slow_version) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Data data = draw(80, 2, 2, 2 + seed % 2, seed % 3 == 0, seed % 4 == 0, 400 + seed);
    QuinlanOptions options = c45();
    const MultiwayTree full = grow(data, options);
    options.prune = true;
    options.subtree_raising = seed % 2 == 0;
    options.confidence = seed % 5 == 0 ? 0.05 : 0.25;
    SlowNode slow = copy(full, 0);
    prune(data, slow, all_items(data), options.confidence, options.subtree_raising);
    check_same(slow, grow(data, options), 0);
  }
}

TEST(predictions_are_weighted_leaf_fractions) {
  const Data data = draw(80, 2, 2, 3, true, false, 7);
  const MultiwayTree tree = grow(data, c45());
  std::vector<double> out(data.n * data.n_classes);
  predict(tree, data.table(), 2, out.data());
  const auto slow = [&](const auto& self, std::size_t at, std::size_t row) -> std::vector<double> {
    const MultiwayNode& node = tree.nodes[at];
    if (node.is_leaf()) return node.fractions;
    const double value = data.x[static_cast<std::size_t>(node.feature)][row];
    std::vector<double> sum(data.n_classes);
    for (std::size_t b = 0; b < node.children.size(); ++b) {
      double share = node.shares[b];
      if (!std::isnan(value)) {
        const std::size_t own = node.branch_of.empty() ? (value <= node.threshold ? 0U : 1U)
                                                       : static_cast<std::size_t>(value);
        share = b == own ? 1.0 : 0.0;
      }
      if (share == 0) continue;
      const auto child = self(self, static_cast<std::size_t>(node.children[b]), row);
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += share * child[k];
    }
    return sum;
  };
  for (std::size_t row = 0; row < data.n; ++row) {
    const std::vector<double> expected = slow(slow, 0, row);
    double sum = 0;
    for (std::size_t k = 0; k < expected.size(); ++k) {
      CHECK_NEAR(out[row * data.n_classes + k], expected[k], 1e-12);
      sum += expected[k];
    }
    CHECK_NEAR(sum, 1, 1e-12);
  }
}

TEST(rules_are_simplified_greedily) {
  common::Stream stream(11, common::Purpose::rows, 0);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Data data = draw(70, 2, 2, 2, seed % 2 == 0, seed % 3 == 0, 500 + seed);
    SimpleRule rule;
    rule.label = static_cast<std::uint32_t>(stream.below(2));
    const std::size_t n_conditions = 1 + stream.below(5);
    for (std::size_t c = 0; c < n_conditions; ++c) {
      RuleCondition condition;
      condition.feature = static_cast<std::int32_t>(stream.below(4));
      if (condition.feature < 2) {
        condition.low = static_cast<double>(stream.below(6)) - 1;
        condition.high = condition.low + 2 + static_cast<double>(stream.below(8));
      } else {
        for (int k = 0; k < Data::n_categories; ++k) {
          condition.allowed.push_back(static_cast<std::uint8_t>(stream.below(2)));
        }
      }
      rule.conditions.push_back(condition);
    }
    const auto holds = [&](const RuleCondition& condition, std::size_t row) {
      const double value = data.x[static_cast<std::size_t>(condition.feature)][row];
      if (std::isnan(value)) return false;
      if (condition.feature < 2) return condition.low < value && value <= condition.high;
      return condition.allowed[static_cast<std::size_t>(value)] != 0;
    };
    struct Cover {
      double weight = 0;
      double errors = 0;
    };
    const auto cover = [&](const std::vector<std::uint8_t>& kept) {
      Cover out;
      for (const Item& item : all_items(data)) {
        bool all = true;
        for (std::size_t c = 0; c < kept.size(); ++c) {
          all &= kept[c] == 0 || holds(rule.conditions[c], item.row);
        }
        if (!all) continue;
        out.weight += item.weight;
        out.errors += data.labels[item.row] != rule.label ? item.weight : 0.0;
      }
      return out;
    };
    const auto rate = [&](const Cover& c) {
      return c.weight > 0 ? (c.errors + extra_errors(c.weight, c.errors, 0.25)) / c.weight : 1.0;
    };
    std::vector<std::uint8_t> kept(n_conditions, 1);
    while (true) {
      double best = rate(cover(kept));
      std::size_t dropped = n_conditions;
      for (std::size_t c = 0; c < n_conditions; ++c) {
        if (kept[c] == 0) continue;
        std::vector<std::uint8_t> without = kept;
        without[c] = 0;
        if (rate(cover(without)) > best) continue;
        best = rate(cover(without));
        dropped = c;
      }
      if (dropped == n_conditions) break;
      kept[dropped] = 0;
    }
    std::vector<SimpleRule> rules{rule};
    const QuinlanRows rows(data.table(), data.targets(), false, 1);
    simplify_rules(rows, 0.25, 1, rules);
    CHECK(rules[0].kept == kept);
    CHECK_NEAR(rules[0].weight, cover(kept).weight, 1e-9);
    CHECK_NEAR(rules[0].errors, cover(kept).errors, 1e-9);
  }
}

TEST(quinlan_options_are_checked) {
  QuinlanOptions options;
  options.check();
  options.confidence = 1;
  bool refused = false;
  try {
    options.check();
  } catch (const common::InputError& error) {
    refused = std::string(error.what()).find("confidence must be") == 0;
  }
  CHECK(refused);
}
