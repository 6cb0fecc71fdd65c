#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/multiway/error_pruner.h"
#include "spinney/multiway/multiway_tree.h"
#include "spinney/multiway/quinlan_grower.h"
#include "spinney/multiway/rule_simplifier.h"
#include "table.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

// The tree as flat arrays; *_start has the offsets of each node's list.
nb::dict to_arrays(const multiway::MultiwayTree& tree) {
  std::vector<std::int32_t> feature;
  std::vector<double> threshold;
  std::vector<std::int64_t> child_start{0};
  std::vector<std::int32_t> children;
  std::vector<double> shares;
  std::vector<std::int64_t> branch_start{0};
  std::vector<std::int32_t> branch_of;
  std::vector<double> counts;
  std::vector<double> fractions;
  std::vector<double> weight;
  std::vector<std::int64_t> n_rows;
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const multiway::MultiwayNode& node : tree.nodes) {
    feature.push_back(node.feature);
    threshold.push_back(node.threshold);
    append(children, node.children);
    append(shares, node.shares);
    append(branch_of, node.branch_of);
    append(counts, node.counts);
    append(fractions, node.fractions);
    child_start.push_back(static_cast<std::int64_t>(children.size()));
    branch_start.push_back(static_cast<std::int64_t>(branch_of.size()));
    weight.push_back(node.weight);
    n_rows.push_back(node.n_rows);
  }
  nb::dict out;
  out["feature"] = to_numpy(std::move(feature));
  out["threshold"] = to_numpy(std::move(threshold));
  out["child_start"] = to_numpy(std::move(child_start));
  out["children"] = to_numpy(std::move(children));
  out["shares"] = to_numpy(std::move(shares));
  out["branch_start"] = to_numpy(std::move(branch_start));
  out["branch_of"] = to_numpy(std::move(branch_of));
  out["counts"] = to_numpy(std::move(counts));
  out["fractions"] = to_numpy(std::move(fractions));
  out["weight"] = to_numpy(std::move(weight));
  out["n_rows"] = to_numpy(std::move(n_rows));
  return out;
}

template <class T>
std::vector<T> list_at(const Array<T>& values, const Array<std::int64_t>& starts, std::size_t i) {
  const std::int64_t begin = starts.data()[i];
  const std::int64_t end = starts.data()[i + 1];
  if (begin < 0 || end < begin || end > static_cast<std::int64_t>(values.size())) {
    throw common::InputError("the offsets of the tree or rules exceed the arrays");
  }
  return std::vector<T>(values.data() + begin, values.data() + end);
}

multiway::MultiwayTree from_arrays(std::size_t n_classes, bool missing_is_category,
                                   const Array<std::int32_t>& feature,
                                   const Array<double>& threshold,
                                   const Array<std::int64_t>& child_start,
                                   const Array<std::int32_t>& children, const Array<double>& shares,
                                   const Array<std::int64_t>& branch_start,
                                   const Array<std::int32_t>& branch_of,
                                   const Array<double>& fractions) {
  multiway::MultiwayTree tree;
  tree.n_classes = n_classes;
  tree.missing_is_category = missing_is_category;
  const std::size_t n = feature.size();
  if (n == 0 || threshold.size() != n || child_start.size() != n + 1 ||
      branch_start.size() != n + 1 || shares.size() != children.size() || n_classes == 0 ||
      fractions.size() % n_classes != 0 || fractions.size() / n_classes != n) {
    throw common::InputError("the sizes of the tree's arrays do not match");
  }
  tree.nodes.resize(n);
  std::vector<std::uint8_t> reached(n);
  for (std::size_t i = 0; i < n; ++i) {
    multiway::MultiwayNode& node = tree.nodes[i];
    node.feature = feature.data()[i];
    node.threshold = threshold.data()[i];
    node.children = list_at(children, child_start, i);
    node.shares = list_at(shares, child_start, i);
    node.branch_of = list_at(branch_of, branch_start, i);
    node.fractions.assign(fractions.data() + i * n_classes, fractions.data() + (i + 1) * n_classes);
    for (const common::NodeIndex child : node.children) {
      if (child <= static_cast<common::NodeIndex>(i) ||
          child >= static_cast<common::NodeIndex>(n)) {
        throw common::InputError("a child of a tree node must follow its parent");
      }
      if (reached[static_cast<std::size_t>(child)] != 0) {
        throw common::InputError("a tree node must not have two parents");
      }
      reached[static_cast<std::size_t>(child)] = 1;
    }
    const auto n_branches = static_cast<std::int32_t>(node.children.size());
    for (const std::int32_t branch : node.branch_of) {
      if (branch >= n_branches)
        throw common::InputError("a category of the tree refers to a branch that does not exist");
    }
    if (node.branch_of.empty() && n_branches != 0 && n_branches != 2) {
      throw common::InputError("a numeric split of the tree must have two branches");
    }
  }
  return tree;
}

nb::object predict_rows(const multiway::MultiwayTree& tree, const BoundTable& bound,
                        int n_threads) {
  const table::Table& table = bound.table;
  for (const multiway::MultiwayNode& node : tree.nodes) {
    if (node.is_leaf()) continue;
    const auto f = static_cast<std::size_t>(node.feature);
    const bool known = node.feature >= 0 && f < table.n_features();
    if (!known ||
        (table.columns[f].kind == table::ColumnKind::categorical) != !node.branch_of.empty()) {
      throw common::InputError("the columns of the table do not match the tree");
    }
  }
  std::vector<double> out(table.n_rows * tree.n_classes);
  {
    const nb::gil_scoped_release release;
    multiway::predict(tree, table, n_threads, out.data());
  }
  return to_numpy(std::move(out));
}

// rule_start and allowed_start have the offsets of each rule's conditions and allowed codes.
nb::tuple simplify(const BoundTable& table, const BoundTargets& targets, double confidence,
                   int n_threads, const Array<std::uint32_t>& labels,
                   const Array<std::int64_t>& rule_start, const Array<std::int32_t>& feature,
                   const Array<double>& low, const Array<double>& high,
                   const Array<std::int64_t>& allowed_start, const Array<std::uint8_t>& allowed) {
  const std::size_t n_rules = labels.size();
  const std::size_t n_conditions = feature.size();
  if (rule_start.size() != n_rules + 1 || low.size() != n_conditions ||
      high.size() != n_conditions || allowed_start.size() != n_conditions + 1) {
    throw common::InputError("the sizes of the rules' arrays do not match");
  }
  std::vector<multiway::SimpleRule> rules(n_rules);
  for (std::size_t i = 0; i < n_rules; ++i) {
    rules[i].label = labels.data()[i];
    for (const std::int32_t f : list_at(feature, rule_start, i)) {
      if (f < 0 || static_cast<std::size_t>(f) >= table.table.n_features()) {
        throw common::InputError("a rule uses a column that does not exist");
      }
      rules[i].conditions.push_back({f, 0, 0, {}});
    }
    for (std::size_t c = 0; c < rules[i].conditions.size(); ++c) {
      const auto at = static_cast<std::size_t>(rule_start.data()[i]) + c;
      rules[i].conditions[c].low = low.data()[at];
      rules[i].conditions[c].high = high.data()[at];
      rules[i].conditions[c].allowed = list_at(allowed, allowed_start, at);
    }
  }
  {
    const nb::gil_scoped_release release;
    const multiway::QuinlanRows rows(table.table, targets.targets, false, n_threads);
    multiway::simplify_rules(rows, confidence, n_threads, rules);
  }
  std::vector<std::uint8_t> kept;
  std::vector<double> weight;
  std::vector<double> errors;
  for (const multiway::SimpleRule& rule : rules) {
    kept.insert(kept.end(), rule.kept.begin(), rule.kept.end());
    weight.push_back(rule.weight);
    errors.push_back(rule.errors);
  }
  return nb::make_tuple(to_numpy(std::move(kept)), to_numpy(std::move(weight)),
                        to_numpy(std::move(errors)));
}

}  // namespace

void bind_multiway(nb::module_& m) {
  nb::class_<multiway::QuinlanOptions>(m, "QuinlanOptions")
      .def(
          "__init__",
          [](multiway::QuinlanOptions* self, bool gain_ratio, bool threshold_cost,
             bool group_categories, bool missing_is_category, double min_samples_branch,
             double min_gain, std::int64_t max_depth, bool collapse, bool prune,
             bool subtree_raising, double confidence, int n_threads) {
            new (self)
                multiway::QuinlanOptions{gain_ratio,          threshold_cost,     group_categories,
                                         missing_is_category, min_samples_branch, min_gain,
                                         max_depth,           collapse,           prune,
                                         subtree_raising,     confidence,         n_threads};
            self->check();
          },
          nb::kw_only(), nb::arg("gain_ratio") = true, nb::arg("threshold_cost") = true,
          nb::arg("group_categories") = false, nb::arg("missing_is_category") = false,
          nb::arg("min_samples_branch") = 2.0, nb::arg("min_gain") = 0.0, nb::arg("max_depth") = 0,
          nb::arg("collapse") = true, nb::arg("prune") = true, nb::arg("subtree_raising") = true,
          nb::arg("confidence") = 0.25, nb::arg("n_threads") = 1)
      .def_ro("missing_is_category", &multiway::QuinlanOptions::missing_is_category);
  nb::class_<multiway::MultiwayTree>(m, "MultiwayTree")
      .def_static("from_arrays", &from_arrays)
      .def("predict", &predict_rows, nb::arg("table"), nb::arg("n_threads"));
  m.def(
      "grow_quinlan_tree",
      [](const BoundTable& table, const BoundTargets& targets,
         const multiway::QuinlanOptions& options, nb::handle progress) {
        multiway::MultiwayTree tree;
        {
          common::Watch watch(make_hook(progress), table.table.n_rows);
          const nb::gil_scoped_release release;
          tree = multiway::grow_quinlan_tree(table.table, targets.targets, options, watch);
        }
        return to_arrays(tree);
      },
      nb::arg("table"), nb::arg("targets"), nb::arg("options"), nb::arg("progress").none());
  m.def("quinlan_root_splits", [](const BoundTable& table, const BoundTargets& targets,
                                  const multiway::QuinlanOptions& options) {
    nb::list out;
    for (const multiway::QuinlanSplit& split :
         multiway::find_root_splits(table.table, targets.targets, options)) {
      out.append(nb::make_tuple(split.found, split.gain, split.info));
    }
    return out;
  });
  m.def("simplify_rules", &simplify);
  m.def("extra_errors", &multiway::extra_errors, nb::arg("n"), nb::arg("errors"),
        nb::arg("confidence"));
}

}  // namespace spinney::bindings
