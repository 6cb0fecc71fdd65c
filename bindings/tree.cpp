#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/tree/grower.h"
#include "spinney/tree/predict.h"
#include "spinney/tree/prune.h"
#include "table.h"

namespace nb = nanobind;
using namespace spinney;

namespace {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutArray = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> view(const Array<T>& array) {
  return {array.data(), array.shape(0)};
}

CriterionKind criterion_named(const std::string& name) {
  if (name == "gini") return CriterionKind::gini;
  if (name == "entropy" || name == "log_loss") return CriterionKind::entropy;
  if (name == "misclassification") return CriterionKind::misclassification;
  if (name == "squared_error") return CriterionKind::squared_error;
  if (name == "poisson") return CriterionKind::poisson;
  if (name == "absolute_error") return CriterionKind::absolute_error;
  throw InputError("unknown criterion '" + name + "'");
}

// Polls for Ctrl-C and reports progress; runs on the calling thread with the GIL released.
Watch::Hook make_hook(nb::handle progress) {
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

// labels and values are (n_outputs, n_rows), one of them empty.
nb::dict grow(const BoundTable& bound, const std::string& criterion,
              const nb::ndarray<const std::uint32_t, nb::c_contig, nb::device::cpu>& labels,
              const std::vector<std::uint32_t>& n_classes,
              const nb::ndarray<const double, nb::c_contig, nb::device::cpu>& values,
              const std::optional<Array<double>>& weights, bool integral_weights,
              std::size_t n_outputs, bool random_splits, std::int64_t max_depth,
              std::int64_t min_samples_split, std::int64_t min_samples_leaf, double min_weight_leaf,
              std::int64_t max_features, std::int64_t max_leaf_nodes, double min_impurity_decrease,
              const std::vector<int>& monotonic, std::uint64_t seed, int n_threads,
              nb::handle progress) {
  Targets targets;
  targets.n_rows = bound.table.n_rows;
  targets.n_outputs = n_outputs;
  targets.n_classes = n_classes;
  if (!n_classes.empty()) {
    targets.labels = labels.data();
  } else {
    targets.values = values.data();
  }
  targets.weights = weights ? weights->data() : nullptr;
  targets.integral_weights = integral_weights;

  GrowOptions options;
  options.criterion = criterion_named(criterion);
  options.random_splits = random_splits;
  options.max_depth = max_depth;
  options.min_samples_split = min_samples_split;
  options.min_samples_leaf = min_samples_leaf;
  options.min_weight_leaf = min_weight_leaf;
  options.max_features = max_features;
  options.max_leaf_nodes = max_leaf_nodes;
  options.min_impurity_decrease = min_impurity_decrease;
  for (const int sign : monotonic) options.monotonic.push_back(static_cast<std::int8_t>(sign));
  options.seed = seed;
  options.n_threads = n_threads;

  Watch watch(make_hook(progress), targets.n_rows);
  Tree tree;
  {
    const nb::gil_scoped_release release;
    tree = grow_tree(bound.table, targets, options, watch);
  }
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

}  // namespace

void bind_tree(nb::module_& m) {
  m.def("grow_tree", &grow, nb::arg("table"), nb::arg("criterion"), nb::arg("labels"),
        nb::arg("n_classes"), nb::arg("values"), nb::arg("weights").none(),
        nb::arg("integral_weights"), nb::arg("n_outputs"), nb::arg("random_splits"),
        nb::arg("max_depth"), nb::arg("min_samples_split"), nb::arg("min_samples_leaf"),
        nb::arg("min_weight_leaf"), nb::arg("max_features"), nb::arg("max_leaf_nodes"),
        nb::arg("min_impurity_decrease"), nb::arg("monotonic"), nb::arg("seed"),
        nb::arg("n_threads"), nb::arg("progress").none());

  m.def(
      "weakest_links",
      [](const Array<std::int64_t>& left, const Array<std::int64_t>& right,
         const Array<double>& risk) {
        PruningPath path = weakest_links(view(left), view(right), view(risk));
        return nb::make_tuple(to_numpy(std::move(path.alphas)), to_numpy(std::move(path.risks)),
                              to_numpy(std::move(path.node_alpha)));
      },
      nb::arg("children_left"), nb::arg("children_right"), nb::arg("risk"));

  nb::class_<Predictor>(m, "Predictor")
      .def(
          "__init__",
          [](Predictor* self, const Array<std::int64_t>& left, const Array<std::int64_t>& right,
             const Array<std::int64_t>& feature, const Array<double>& threshold,
             const Array<std::uint8_t>& missing_left, const Array<std::int64_t>& category_start,
             const Array<std::uint32_t>& category_bits) {
            new (self) Predictor({view(left), view(right), view(feature), view(threshold),
                                  view(missing_left), view(category_start), view(category_bits)});
          },
          nb::arg("children_left"), nb::arg("children_right"), nb::arg("feature"),
          nb::arg("threshold"), nb::arg("missing_go_to_left"), nb::arg("category_start"),
          nb::arg("category_bits"))
      .def(
          "apply",
          [](const Predictor& self, const BoundTable& bound, int n_threads,
             const OutArray<std::int64_t>& out) {
            const nb::gil_scoped_release release;
            self.apply(bound.table, n_threads, out.data());
          },
          nb::arg("table"), nb::arg("n_threads"), nb::arg("out"))
      .def(
          "predict",
          [](const Predictor& self, const BoundTable& bound, int n_threads,
             const nb::ndarray<const double, nb::c_contig, nb::device::cpu>& values,
             std::size_t width, const OutArray<double>& out) {
            const nb::gil_scoped_release release;
            self.predict(bound.table, n_threads, values.data(), width, out.data());
          },
          nb::arg("table"), nb::arg("n_threads"), nb::arg("values"), nb::arg("width"),
          nb::arg("out"))
      .def(
          "predict_labels",
          [](const Predictor& self, const BoundTable& bound, int n_threads,
             const Array<std::int64_t>& labels, const OutArray<std::int64_t>& out) {
            const nb::gil_scoped_release release;
            self.predict_labels(bound.table, n_threads, labels.data(), out.data());
          },
          nb::arg("table"), nb::arg("n_threads"), nb::arg("labels"), nb::arg("out"))
      .def(
          "decision_path",
          [](const Predictor& self, const BoundTable& bound, int n_threads) {
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
