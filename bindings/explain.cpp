#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/common/parallel.h"
#include "spinney/explain/tree_explainer.h"
#include "spinney/forest/forest.h"
#include "table.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

struct BoundExplainer {
  explain::TreeExplainer explainer;
  std::size_t n_trees = 0;
};

template <class To, class From>
std::vector<To> list_of(const Array<From>& array) {
  return {array.data(), array.data() + array.size()};
}

// by_rows: fractions of rows instead of their weights.
explain::GameTree as_game(forest::Tree&& from, bool by_rows, std::size_t output) {
  explain::GameTree tree;
  tree.width = from.value_size;
  tree.output = output;
  tree.share_left.assign(from.size(), 0.5);
  const auto cover = [&](common::NodeIndex node) {
    const auto at = static_cast<std::size_t>(node);
    return by_rows ? static_cast<double>(from.n_rows[at]) : std::max(from.weight[at], 0.0);
  };
  for (std::size_t node = 0; node < from.size(); ++node) {
    if (from.left[node] == forest::no_child) continue;
    const double left = cover(from.left[node]);
    const double total = left + cover(from.right[node]);
    if (total > 0) tree.share_left[node] = left / total;
  }
  tree.left = {from.left.begin(), from.left.end()};
  tree.right = {from.right.begin(), from.right.end()};
  tree.feature = std::move(from.feature);
  tree.threshold = std::move(from.threshold);
  tree.missing_left = std::move(from.missing_left);
  tree.category_start = std::move(from.category_start);
  tree.category_bits = std::move(from.category_bits);
  tree.value = std::move(from.value);
  return tree;
}

}  // namespace

void bind_explain(nb::module_& m) {
  nb::class_<BoundExplainer>(m, "TreeExplainer")
      .def(
          "__init__",
          [](BoundExplainer* self, std::vector<std::int32_t> n_categories, std::size_t n_outputs) {
            new (self) BoundExplainer{explain::TreeExplainer(std::move(n_categories), n_outputs)};
          },
          nb::arg("n_categories"), nb::arg("n_outputs"))
      .def(
          "append",
          [](BoundExplainer& self, const Array<std::int64_t>& left,
             const Array<std::int64_t>& right, const Array<std::int64_t>& feature,
             const Array<double>& threshold, const Array<std::uint8_t>& missing_left,
             const Array<std::int64_t>& category_start, const Array<std::uint32_t>& category_bits,
             const Array<double>& share_left, const Array<double>& value, std::size_t width,
             std::size_t output) {
            explain::GameTree tree;
            tree.width = width;
            tree.output = output;
            tree.left = list_of<std::int32_t>(left);
            tree.right = list_of<std::int32_t>(right);
            tree.feature = list_of<std::int32_t>(feature);
            tree.threshold = list_of<double>(threshold);
            tree.missing_left = list_of<std::uint8_t>(missing_left);
            tree.category_start = list_of<std::int64_t>(category_start);
            tree.category_bits = list_of<std::uint32_t>(category_bits);
            tree.share_left = list_of<double>(share_left);
            tree.value = list_of<double>(value);
            self.explainer.append(std::move(tree));
            ++self.n_trees;
          },
          nb::arg("left"), nb::arg("right"), nb::arg("feature"), nb::arg("threshold"),
          nb::arg("missing_left"), nb::arg("category_start"), nb::arg("category_bits"),
          nb::arg("share_left"), nb::arg("value"), nb::arg("width"), nb::arg("output"))
      .def(
          "append_forest",
          [](BoundExplainer& self, const forest::Forest& forest, std::size_t n_trees,
             std::size_t n_scores, bool one_each, bool by_rows, int n_threads) {
            if (n_trees > forest.trees.size() || n_scores == 0 || n_threads < 1) {
              throw common::InputError(
                  "append_forest: n_trees, n_scores or n_threads is out of range");
            }
            const nb::gil_scoped_release release;
            std::vector<explain::GameTree> trees(n_trees);
            common::parallel_for(n_trees, n_threads, [&](std::size_t t, int) {
              trees[t] = as_game(forest::expand(forest.trees[t], forest.shape, forest.n_categories),
                                 by_rows, one_each ? t % n_scores : 0);
            });
            for (explain::GameTree& tree : trees) self.explainer.append(std::move(tree));
            self.n_trees += n_trees;
          },
          nb::arg("forest"), nb::arg("n_trees"), nb::arg("n_scores"), nb::arg("one_each"),
          nb::arg("by_rows"), nb::arg("n_threads"))
      .def(
          "set_background",
          [](BoundExplainer& self, const BoundTable& bound) {
            const nb::gil_scoped_release release;
            self.explainer.set_background(bound.table);
          },
          nb::arg("table"))
      .def("base_values",
           [](const BoundExplainer& self) {
             std::vector<double> out(self.explainer.n_outputs());
             self.explainer.base_values(out.data());
             return to_numpy(std::move(out));
           })
      .def(
          "explain",
          [](const BoundExplainer& self, const BoundTable& bound, bool interactions, int n_threads,
             const OutArray<double>& out, nb::handle progress) {
            const std::size_t n_features = self.explainer.n_features();
            const std::size_t per_row =
                n_features * (interactions ? n_features : 1) * self.explainer.n_outputs();
            if (out.size() != bound.table.n_rows * per_row || n_threads < 1) {
              throw common::InputError(
                  "explain: out must have one number per row, feature and output");
            }
            common::Watch watch(make_hook(progress), self.n_trees * bound.table.n_rows);
            const nb::gil_scoped_release release;
            self.explainer.explain(bound.table, interactions, n_threads, out.data(), watch);
          },
          nb::arg("table"), nb::arg("interactions"), nb::arg("n_threads"), nb::arg("out"),
          nb::arg("progress").none());
}

}  // namespace spinney::bindings
