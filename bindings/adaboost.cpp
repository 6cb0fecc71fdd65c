#include "spinney/ensemble/adaboost.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/serving/votes.h"
#include "table.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

ensemble::AdaBoostKind kind_named(const std::string& name) {
  if (name == "M1") return ensemble::AdaBoostKind::m1;
  if (name == "real") return ensemble::AdaBoostKind::real;
  if (name == "SAMME") return ensemble::AdaBoostKind::samme;
  throw unknown_name("algorithm", name, {"SAMME", "M1", "real"});
}

const char* name_of(ensemble::AdaBoostEnd end) {
  switch (end) {
    case ensemble::AdaBoostEnd::perfect:
      return "perfect";
    case ensemble::AdaBoostEnd::useless:
      return "useless";
    case ensemble::AdaBoostEnd::overflow:
      return "overflow";
    default:
      return "complete";
  }
}

nb::tuple run(forest::Forest& forest, const BoundTable& bound, const BoundTargets& targets,
              const tree::GrowOptions& tree, const std::string& kind, double learning_rate,
              const Array<std::uint64_t>& seeds, const OutArray<double>& weights,
              nb::handle progress) {
  ensemble::AdaBoostOptions options;
  options.tree = tree;
  options.kind = kind_named(kind);
  options.n_rounds = seeds.size();
  options.learning_rate = learning_rate;
  options.seeds = seeds.data();
  ensemble::AdaBoostHistory history;
  {
    common::Watch watch(make_hook(progress), options.n_rounds);
    const nb::gil_scoped_release release;
    ensemble::adaboost(bound.table, targets.targets, options, weights.data(), forest, history,
                       watch);
  }
  return nb::make_tuple(to_numpy(std::move(history.weights)), to_numpy(std::move(history.errors)),
                        name_of(history.end));
}

}  // namespace

void bind_adaboost(nb::module_& m) {
  m.def("adaboost", &run, nb::arg("forest"), nb::arg("table"), nb::arg("targets"), nb::arg("tree"),
        nb::arg("kind"), nb::arg("learning_rate"), nb::arg("seeds"), nb::arg("weights"),
        nb::arg("progress").none());
  m.def(
      "add_votes",
      [](const forest::Forest& forest, const BoundTable& bound, const Array<double>& tree_weights,
         bool real, std::size_t first, std::size_t last, int n_threads,
         const OutArray<double>& out) {
        if (first > last || last > forest.trees.size() || last > tree_weights.size()) {
          throw common::InputError("add_votes: tree index out of range");
        }
        if (out.size() != bound.table.n_rows * forest.shape.width()) {
          throw common::InputError(
              "add_votes: out must have one row per row and one column per class");
        }
        const nb::gil_scoped_release release;
        serving::add_votes(forest, bound.table, tree_weights.data(), real, first, last, n_threads,
                           out.data());
      },
      nb::arg("forest"), nb::arg("table"), nb::arg("tree_weights"), nb::arg("real"),
      nb::arg("first"), nb::arg("last"), nb::arg("n_threads"), nb::arg("out"));
}

}  // namespace spinney::bindings
