// Growth of forests: options, samples of rows, out-of-bag results.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/common/exp.h"
#include "spinney/ensemble/category_order.h"
#include "spinney/ensemble/forest_grower.h"
#include "table.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

// A prepared table, with the arrays that its table reads.
struct BoundPrepared {
  BoundTable bound;
  std::unique_ptr<tree::PreparedTable> prepared;
};

ensemble::Importance importance_named(const std::string& name) {
  if (name == "corrected") return ensemble::Importance::corrected;
  if (name == "permutation") return ensemble::Importance::permutation;
  if (name == "impurity") return ensemble::Importance::none;
  throw unknown_name("importance", name, {"impurity", "corrected", "permutation"});
}

void grow_forest(forest::Forest& forest, const BoundPrepared& bound, const BoundTargets& targets,
                 ensemble::ForestOptions options, const std::optional<Array<double>>& draw_weights,
                 const std::optional<Matrix<std::uint32_t>>& counts,
                 const std::optional<Matrix<std::int32_t>>& features,
                 ensemble::OutOfBag& out_of_bag, nb::handle progress,
                 const std::optional<Array<std::uint64_t>>& seeds) {
  if (targets.targets.n_outputs != forest.shape.n_outputs ||
      targets.targets.n_classes != forest.shape.n_classes ||
      targets.targets.n_rows != bound.bound.table.n_rows) {
    throw common::InputError(
        "targets: the number of rows, outputs or classes does not match the forest");
  }
  if (seeds) options.tree_seeds = seeds->data();
  if (draw_weights) options.draw_weights = draw_weights->data();
  if (counts) options.counts = counts->data();
  if (features) {
    options.features = features->data();
    options.n_features_per_tree = features->shape(1);
  }
  const auto n_rows = static_cast<double>(targets.targets.n_rows);
  const double share = options.bootstrap && options.replace
                           ? 1.0 - common::exp(-static_cast<double>(options.n_drawn) / n_rows)
                           : 1.0;
  const double total = share * n_rows * static_cast<double>(options.n_trees);
  common::Watch watch(make_hook(progress), static_cast<std::uint64_t>(total));
  const nb::gil_scoped_release release;
  ensemble::grow_forest(*bound.prepared, targets.targets, options, forest, out_of_bag, watch);
}

template <class T>
nb::object copy(const std::vector<T>& values) {
  return to_numpy(std::vector<T>(values));
}

}  // namespace

void bind_ensemble(nb::module_& m) {
  nb::class_<BoundPrepared>(m, "PreparedTable")
      .def(
          "__init__",
          [](BoundPrepared* self, const BoundTable& bound, bool random_splits, int n_threads,
             bool bare) {
            auto* made = new (self) BoundPrepared{bound, nullptr};
            const nb::gil_scoped_release release;
            made->prepared = std::make_unique<tree::PreparedTable>(made->bound.table, random_splits,
                                                                   n_threads, bare);
          },
          nb::arg("table"), nb::arg("random_splits"), nb::arg("n_threads"),
          nb::arg("bare") = false);

  nb::class_<ensemble::ForestOptions>(m, "ForestOptions")
      .def(
          "__init__",
          [](ensemble::ForestOptions* self, const tree::GrowOptions& tree, std::size_t first_tree,
             std::size_t n_trees, int n_threads, bool bootstrap, bool replace, std::size_t n_drawn,
             bool balance_classes, double ccp_alpha, bool hard_votes, bool out_of_bag,
             std::vector<common::Row> followed, bool keep_members, std::vector<double> centre,
             const std::string& importance) {
            ensemble::ForestOptions options;
            options.tree = tree;
            options.first_tree = first_tree;
            options.n_trees = n_trees;
            options.n_threads = n_threads;
            options.bootstrap = bootstrap;
            options.replace = replace;
            options.n_drawn = n_drawn;
            options.balance_classes = balance_classes;
            options.ccp_alpha = ccp_alpha;
            options.hard_votes = hard_votes;
            options.out_of_bag = out_of_bag;
            options.followed = std::move(followed);
            options.keep_members = keep_members;
            options.centre = std::move(centre);
            options.importance = importance_named(importance);
            options.check();
            new (self) ensemble::ForestOptions(std::move(options));
          },
          nb::kw_only(), nb::arg("tree"), nb::arg("first_tree") = 0, nb::arg("n_trees") = 1,
          nb::arg("n_threads") = 1, nb::arg("bootstrap") = false, nb::arg("replace") = true,
          nb::arg("n_drawn") = 0, nb::arg("balance_classes") = false, nb::arg("ccp_alpha") = 0.0,
          nb::arg("hard_votes") = false, nb::arg("out_of_bag") = false,
          nb::arg("followed") = std::vector<common::Row>(), nb::arg("keep_members") = false,
          nb::arg("centre") = std::vector<double>(), nb::arg("importance") = "impurity");

  nb::class_<ensemble::OutOfBag>(m, "OutOfBag")
      .def(nb::init<>())
      .def(
          "restore",
          [](ensemble::OutOfBag& self, const Array<double>& sums, const Array<double>& squares,
             const Array<std::uint32_t>& n_trees, const Array<double>& curve,
             const Array<double>& importances) {
            self.sums.assign(sums.data(), sums.data() + sums.size());
            self.squares.assign(squares.data(), squares.data() + squares.size());
            self.n_trees.assign(n_trees.data(), n_trees.data() + n_trees.size());
            self.curve.assign(curve.data(), curve.data() + curve.size());
            self.importances.assign(importances.data(), importances.data() + importances.size());
          },
          nb::arg("sums"), nb::arg("squares"), nb::arg("n_trees"), nb::arg("curve"),
          nb::arg("importances"))
      .def_prop_ro("sums", [](const ensemble::OutOfBag& self) { return copy(self.sums); })
      .def_prop_ro("squares", [](const ensemble::OutOfBag& self) { return copy(self.squares); })
      .def_prop_ro("n_trees", [](const ensemble::OutOfBag& self) { return copy(self.n_trees); })
      .def_prop_ro("curve", [](const ensemble::OutOfBag& self) { return copy(self.curve); })
      .def_prop_ro("importances",
                   [](const ensemble::OutOfBag& self) { return copy(self.importances); });

  // Rows that determine a tree's order of categories; they are not out-of-bag rows of this tree.
  m.def(
      "determines_order",
      [](std::uint64_t tree_seed, std::size_t n_rows) {
        std::vector<std::uint8_t> out(n_rows);
        for (std::size_t row = 0; row < n_rows; ++row) {
          out[row] = ensemble::determines_order(tree_seed, static_cast<common::Row>(row));
        }
        return to_numpy(std::move(out));
      },
      nb::arg("tree_seed"), nb::arg("n_rows"));
  m.def("seed_of_tree", &ensemble::seed_of_tree, nb::arg("forest_seed"), nb::arg("tree"));

  m.def(
      "draw_bag",
      [](std::size_t n_rows, std::size_t n_drawn, bool replace,
         const std::optional<Array<double>>& weights, std::uint64_t forest_seed, std::size_t tree) {
        return to_numpy(ensemble::draw_bag(n_rows, n_drawn, replace,
                                           weights ? weights->data() : nullptr,
                                           ensemble::seed_of_tree(forest_seed, tree)));
      },
      nb::arg("n_rows"), nb::arg("n_drawn"), nb::arg("replace"), nb::arg("weights").none(),
      nb::arg("forest_seed"), nb::arg("tree"));

  // Append trees to a forest.
  m.def("grow_forest", &grow_forest, nb::arg("forest"), nb::arg("prepared"), nb::arg("targets"),
        nb::arg("options"), nb::arg("draw_weights").none(), nb::arg("counts").none(),
        nb::arg("features").none(), nb::arg("out_of_bag"), nb::arg("progress").none(),
        nb::arg("seeds").none() = nb::none());
}

}  // namespace spinney::bindings
