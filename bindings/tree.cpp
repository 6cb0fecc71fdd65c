#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/serving/predict.h"
#include "spinney/tree/grower.h"
#include "spinney/tree/prune.h"
#include "table.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

criterion::CriterionKind criterion_named(const std::string& name) {
  if (name == "gini") return criterion::CriterionKind::gini;
  if (name == "entropy" || name == "log_loss") return criterion::CriterionKind::entropy;
  if (name == "misclassification") return criterion::CriterionKind::misclassification;
  if (name == "squared_error") return criterion::CriterionKind::squared_error;
  if (name == "poisson") return criterion::CriterionKind::poisson;
  if (name == "absolute_error") return criterion::CriterionKind::absolute_error;
  throw unknown_name("criterion", name,
                     {"gini", "entropy", "log_loss", "misclassification", "squared_error",
                      "poisson", "absolute_error"});
}

// Polls for Ctrl-C and reports progress; runs on the calling thread with the GIL released.
common::Watch::Hook make_hook(nb::handle progress) {
  return [progress](std::uint64_t done, std::uint64_t total) {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) return false;
    if (progress.is_none()) return true;
    PyObject* result =
        PyObject_CallFunction(progress.ptr(), "KK", static_cast<unsigned long long>(done),
                              static_cast<unsigned long long>(total));
    if (result == nullptr) return false;
    Py_DECREF(result);
    return true;
  };
}

nb::dict tree_arrays(forest::Tree&& tree) {
  nb::dict out;
  // Children and features as 64 bits: that is what users of scikit-learn's trees index with.
  out["children_left"] = to_numpy(std::vector<std::int64_t>(tree.left.begin(), tree.left.end()));
  out["children_right"] = to_numpy(std::vector<std::int64_t>(tree.right.begin(), tree.right.end()));
  out["feature"] = to_numpy(std::vector<std::int64_t>(tree.feature.begin(), tree.feature.end()));
  out["threshold"] = to_numpy(std::move(tree.threshold));
  out["missing_go_to_left"] = to_numpy(std::move(tree.missing_left));
  out["impurity"] = to_numpy(std::move(tree.impurity));
  out["n_node_samples"] = to_numpy(std::move(tree.n_rows));
  out["weighted_n_node_samples"] = to_numpy(std::move(tree.weight));
  out["value"] = to_numpy(std::move(tree.value));
  out["category_start"] = to_numpy(std::move(tree.category_start));
  out["category_bits"] = to_numpy(std::move(tree.category_bits));
  out["max_depth"] = tree.max_depth;
  return out;
}

namespace {

nb::dict grow(const BoundTable& bound, const BoundTargets& targets,
              const tree::GrowOptions& options, nb::handle progress) {
  common::Watch watch(make_hook(progress), targets.targets.n_rows);
  forest::Tree tree;
  {
    const nb::gil_scoped_release release;
    tree = tree::grow_tree(bound.table, targets.targets, options, watch);
  }
  return tree_arrays(std::move(tree));
}

// Output arrays come from Python, whose sizes may follow from a damaged model.
void require_size(const char* name, std::size_t given, std::size_t expected) {
  if (given != expected) {
    throw common::InputError(std::string(name) + " has the wrong size: expected " +
                             std::to_string(expected) + ", got " + std::to_string(given));
  }
}

}  // namespace

void bind_tree(nb::module_& m) {
  // targets: labels or values, (n_outputs, n_rows); n_classes is empty for regression.
  nb::class_<BoundTargets>(m, "Targets")
      .def(
          "__init__",
          [](BoundTargets* self, nb::object array, const std::vector<std::uint32_t>& n_classes,
             nb::object weights, bool integral_weights) {
            auto* bound = new (self) BoundTargets();
            criterion::Targets& targets = bound->targets;
            targets.n_classes = n_classes;
            if (n_classes.empty()) {
              const auto values = nb::cast<Matrix<double>>(array);
              targets.values = values.data();
              targets.n_outputs = values.shape(0);
              targets.n_rows = values.shape(1);
            } else {
              const auto labels = nb::cast<Matrix<std::uint32_t>>(array);
              targets.labels = labels.data();
              targets.n_outputs = labels.shape(0);
              targets.n_rows = labels.shape(1);
              if (n_classes.size() != targets.n_outputs) {
                throw common::InputError("n_classes must have one element per output");
              }
            }
            if (!weights.is_none()) {
              const auto given = nb::cast<Array<double>>(weights);
              if (given.size() != targets.n_rows) {
                throw common::InputError("weights must have one element per row");
              }
              targets.weights = given.data();
              targets.integral_weights = integral_weights;
            }
            bound->owners = {std::move(array), std::move(weights)};
          },
          nb::arg("targets"), nb::arg("n_classes"), nb::arg("weights").none(),
          nb::arg("integral_weights"));

  nb::class_<tree::GrowOptions>(m, "GrowOptions")
      .def(
          "__init__",
          [](tree::GrowOptions* self, const std::string& criterion, bool random_splits,
             std::int64_t max_depth, std::int64_t min_samples_split, std::int64_t min_samples_leaf,
             double min_weight_leaf, std::int64_t max_features, std::int64_t max_leaf_nodes,
             double min_impurity_decrease, std::vector<std::int8_t> monotonic_cst, bool coarse,
             bool narrow_thresholds, std::uint64_t seed, int n_threads) {
            tree::GrowOptions options;
            options.criterion = criterion_named(criterion);
            options.random_splits = random_splits;
            options.max_depth = max_depth;
            options.min_samples_split = min_samples_split;
            options.min_samples_leaf = min_samples_leaf;
            options.min_weight_leaf = min_weight_leaf;
            options.max_features = max_features;
            options.max_leaf_nodes = max_leaf_nodes;
            options.min_impurity_decrease = min_impurity_decrease;
            options.monotonic_cst = std::move(monotonic_cst);
            options.coarse = coarse;
            options.narrow_thresholds = narrow_thresholds;
            options.seed = seed;
            options.n_threads = n_threads;
            options.check();
            new (self) tree::GrowOptions(std::move(options));
          },
          nb::kw_only(), nb::arg("criterion"), nb::arg("random_splits") = false,
          nb::arg("max_depth") = std::numeric_limits<std::int64_t>::max(),
          nb::arg("min_samples_split") = 2, nb::arg("min_samples_leaf") = 1,
          nb::arg("min_weight_leaf") = 0.0, nb::arg("max_features") = 0,
          nb::arg("max_leaf_nodes") = 0, nb::arg("min_impurity_decrease") = 0.0,
          nb::arg("monotonic_cst") = std::vector<std::int8_t>(), nb::arg("coarse") = false,
          nb::arg("narrow_thresholds") = false, nb::arg("seed") = 0, nb::arg("n_threads") = 1)
      .def_ro("random_splits", &tree::GrowOptions::random_splits);

  m.def("grow_tree", &grow, nb::arg("table"), nb::arg("targets"), nb::arg("options"),
        nb::arg("progress").none());

  m.def(
      "weakest_links",
      [](const Array<std::int64_t>& left, const Array<std::int64_t>& right,
         const Array<double>& risk) {
        tree::PruningPath path = tree::weakest_links(view(left), view(right), view(risk));
        return nb::make_tuple(to_numpy(std::move(path.alphas)), to_numpy(std::move(path.risks)),
                              to_numpy(std::move(path.node_alpha)));
      },
      nb::arg("children_left"), nb::arg("children_right"), nb::arg("risk"));

  nb::class_<serving::Predictor>(m, "Predictor")
      .def(
          "__init__",
          [](serving::Predictor* self, const Array<std::int64_t>& left,
             const Array<std::int64_t>& right, const Array<std::int64_t>& feature,
             const Array<double>& threshold, const Array<std::uint8_t>& missing_left,
             const Array<std::int64_t>& category_start, const Array<std::uint32_t>& category_bits) {
            new (self)
                serving::Predictor({view(left), view(right), view(feature), view(threshold),
                                    view(missing_left), view(category_start), view(category_bits)});
          },
          nb::arg("children_left"), nb::arg("children_right"), nb::arg("feature"),
          nb::arg("threshold"), nb::arg("missing_go_to_left"), nb::arg("category_start"),
          nb::arg("category_bits"))
      .def(
          "apply",
          [](const serving::Predictor& self, const BoundTable& bound, int n_threads,
             const OutArray<std::int64_t>& out) {
            require_size("out", out.size(), bound.table.n_rows);
            const nb::gil_scoped_release release;
            self.apply(bound.table, n_threads, out.data());
          },
          nb::arg("table"), nb::arg("n_threads"), nb::arg("out"))
      .def(
          "predict",
          [](const serving::Predictor& self, const BoundTable& bound, int n_threads,
             const nb::ndarray<const double, nb::c_contig, nb::device::cpu>& values,
             std::size_t width, const OutArray<double>& out) {
            require_size("values", values.size(), self.n_nodes() * width);
            require_size("out", out.size(), bound.table.n_rows * width);
            const nb::gil_scoped_release release;
            self.predict(bound.table, n_threads, values.data(), width, out.data());
          },
          nb::arg("table"), nb::arg("n_threads"), nb::arg("values"), nb::arg("width"),
          nb::arg("out"))
      .def(
          "predict_labels",
          [](const serving::Predictor& self, const BoundTable& bound, int n_threads,
             const Array<std::int64_t>& labels, const OutArray<std::int64_t>& out) {
            require_size("labels", labels.size(), self.n_nodes());
            require_size("out", out.size(), bound.table.n_rows);
            const nb::gil_scoped_release release;
            self.predict_labels(bound.table, n_threads, labels.data(), out.data());
          },
          nb::arg("table"), nb::arg("n_threads"), nb::arg("labels"), nb::arg("out"))
      .def(
          "decision_path",
          [](const serving::Predictor& self, const BoundTable& bound, int n_threads) {
            std::vector<std::int64_t> indptr;
            std::vector<std::int64_t> indices;
            {
              const nb::gil_scoped_release release;
              self.decision_path(bound.table, n_threads, indptr, indices);
            }
            return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(indices)));
          },
          nb::arg("table"), nb::arg("n_threads"));
}

}  // namespace spinney::bindings
