// Fitted forests: their trees, predictions and state.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/forest/check_tree.h"
#include "spinney/forest/forest_state.h"
#include "spinney/forest/preorder.h"
#include "spinney/serving/forest_reader.h"
#include "spinney/serving/quantiles.h"
#include "table.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

// Output arrays come from Python, where their size may follow from an inconsistent model.
void require_size(std::size_t given, std::size_t needed) {
  if (given != needed) {
    throw common::InputError("output array has the wrong size: expected " + std::to_string(needed) +
                             " elements, got " + std::to_string(given));
  }
}

// Throws InputError unless the leaves have one numeric value per output.
void require_regression(const forest::Forest& forest) {
  if (criterion::is_classification(forest.shape.criterion)) {
    throw common::InputError("a forest of classifiers does not predict numeric values");
  }
}

// Arrays that a forest views are checked once, so they must be read-only.
template <class T>
void require_fixed(std::span<const T> array, nb::handle given) {
  if (nb::cast<bool>(given.attr("flags").attr("writeable")) ||
      reinterpret_cast<std::uintptr_t>(array.data()) % alignof(T) != 0) {
    throw common::InputError("arrays of a forest must be read-only and aligned");
  }
}

// Keeps a Python object alive; threads of the core may release it without the GIL.
std::shared_ptr<const void> owner_of(const nb::object& object) {
  return {object.inc_ref().ptr(), [](PyObject* held) {
            if (!nb::is_alive()) return;
            const nb::gil_scoped_acquire acquire;
            nb::handle(held).dec_ref();
          }};
}

}  // namespace

void bind_forest(nb::module_& m) {
  nb::class_<forest::Forest>(m, "Forest")
      .def(
          "__init__",
          [](forest::Forest* self, const std::string& criterion,
             const std::vector<std::uint32_t>& n_classes, std::size_t n_outputs, bool inner_values,
             const std::vector<std::int32_t>& n_categories) {
            auto* forest = new (self) forest::Forest();
            forest->shape = {criterion_named(criterion), n_classes, n_outputs, inner_values};
            forest->n_categories = n_categories;
          },
          nb::arg("criterion"), nb::arg("n_classes"), nb::arg("n_outputs"), nb::arg("inner_values"),
          nb::arg("n_categories"))
      .def("__len__", [](const forest::Forest& self) { return self.trees.size(); })
      .def(
          "truncate",
          [](forest::Forest& self, std::size_t n_trees) {
            if (n_trees < self.trees.size()) self.trees.resize(n_trees);
          },
          nb::arg("n_trees"))
      // Copies of the trees [first, last), and those of another forest after these.
      .def(
          "part",
          [](const forest::Forest& self, std::size_t first, std::size_t last) {
            if (first > last || last > self.trees.size()) {
              throw common::InputError("part: tree index out of range");
            }
            forest::Forest out{self.shape, self.n_categories, {}};
            for (std::size_t t = first; t < last; ++t) out.trees.push_back(self.trees[t]);
            return out;
          },
          nb::arg("first"), nb::arg("last"))
      .def(
          "extend",
          [](forest::Forest& self, const forest::Forest& more) {
            if (more.shape.width() != self.shape.width() ||
                more.n_categories != self.n_categories) {
              throw common::InputError("extend: the forests have different outputs or categories");
            }
            self.trees.insert(self.trees.end(), more.trees.begin(), more.trees.end());
          },
          nb::arg("more"))
      .def(
          "append",
          [](forest::Forest& self, const nb::dict& arrays) {
            const auto indices = [&](const char* name) {
              return nb::cast<Array<std::int64_t>>(arrays[name]);
            };
            const auto numbers = [&](const char* name) {
              return nb::cast<Array<double>>(arrays[name]);
            };
            const auto left = indices("children_left");
            const auto right = indices("children_right");
            const auto feature = indices("feature");
            const auto threshold = numbers("threshold");
            const auto missing_left = nb::cast<Array<std::uint8_t>>(arrays["missing_go_to_left"]);
            const auto category_start = indices("category_start");
            const auto category_bits = nb::cast<Array<std::uint32_t>>(arrays["category_bits"]);
            const auto impurity = numbers("impurity");
            const auto n_node_samples = indices("n_node_samples");
            const auto weighted_n_node_samples = numbers("weighted_n_node_samples");
            const auto value = numbers("value");
            forest::append_tree({{view(left), view(right), view(feature), view(threshold),
                                  view(missing_left), view(category_start), view(category_bits)},
                                 view(impurity),
                                 view(n_node_samples),
                                 view(weighted_n_node_samples),
                                 view(value)},
                                self);
          },
          nb::arg("arrays"))
      .def(
          "expand",
          [](const forest::Forest& self, std::size_t tree) {
            return tree_arrays(forest::expand(self.trees.at(tree), self.shape, self.n_categories));
          },
          nb::arg("tree"))
      .def("node_counts",
           [](const forest::Forest& self) {
             std::vector<std::int64_t> counts;
             for (const forest::CompactTree& tree : self.trees) {
               counts.push_back(static_cast<std::int64_t>(tree.nodes.size() + tree.n_leaves()));
             }
             return to_numpy(std::move(counts));
           })
      .def(
          "sum_predictions",
          [](const forest::Forest& self, const BoundTable& bound, bool hard_votes, int n_threads,
             const OutArray<double>& out) {
            require_size(out.size(), bound.table.n_rows * self.shape.width());
            if (hard_votes && !criterion::is_classification(self.shape.criterion)) {
              throw common::InputError("hard_votes needs a forest of classifiers");
            }
            const nb::gil_scoped_release release;
            serving::sum_predictions(self, bound.table, hard_votes, n_threads, out.data());
          },
          nb::arg("table"), nb::arg("hard_votes"), nb::arg("n_threads"), nb::arg("out"))
      .def(
          "apply",
          [](const forest::Forest& self, const BoundTable& bound, int n_threads,
             const OutArray<std::int64_t>& out) {
            require_size(out.size(), bound.table.n_rows * self.trees.size());
            const nb::gil_scoped_release release;
            serving::apply(self, bound.table, n_threads, out.data());
          },
          nb::arg("table"), nb::arg("n_threads"), nb::arg("out"))
      .def(
          "path_lengths",
          [](const forest::Forest& self, const BoundTable& bound, int n_threads,
             const OutArray<double>& out) {
            require_size(out.size(), bound.table.n_rows);
            const nb::gil_scoped_release release;
            serving::sum_path_lengths(self, bound.table, n_threads, out.data());
          },
          nb::arg("table"), nb::arg("n_threads"), nb::arg("out"))
      .def(
          "importances",
          [](const forest::Forest& self, int n_threads, const OutArray<double>& out) {
            require_size(out.size(), self.trees.size() * self.n_features());
            const nb::gil_scoped_release release;
            serving::impurity_importances(self, n_threads, out.data());
          },
          nb::arg("n_threads"), nb::arg("out"))
      .def(
          "moments",
          [](const forest::Forest& self, const BoundTable& bound, const Array<double>& centre,
             int n_threads, const OutArray<double>& sums, const OutArray<double>& squares) {
            require_regression(self);
            require_size(centre.size(), self.shape.width());
            require_size(sums.size(), bound.table.n_rows * self.shape.width());
            require_size(squares.size(), sums.size());
            const nb::gil_scoped_release release;
            serving::sum_moments(self, bound.table, centre.data(), n_threads, sums.data(),
                                 squares.data());
          },
          nb::arg("table"), nb::arg("centre"), nb::arg("n_threads"), nb::arg("sums"),
          nb::arg("squares"))
      .def(
          "quantiles",
          [](const forest::Forest& self, const BoundTable& bound, const Matrix<double>& targets,
             const std::optional<Array<double>>& weights, const Array<double>& q, int n_threads,
             const OutArray<double>& out) {
            require_regression(self);
            require_size(targets.shape(0), self.shape.n_outputs);
            if (weights) require_size(weights->size(), targets.shape(1));
            require_size(out.size(), bound.table.n_rows * self.shape.n_outputs * q.size());
            const nb::gil_scoped_release release;
            serving::predict_quantiles(self, bound.table, targets.data(), targets.shape(1),
                                       weights ? weights->data() : nullptr, view(q), n_threads,
                                       out.data());
          },
          nb::arg("table"), nb::arg("targets"), nb::arg("weights").none(), nb::arg("q"),
          nb::arg("n_threads"), nb::arg("out"))
      .def("state",
           [](const forest::Forest& self) {
             forest::ForestState state = forest::to_state(self);
             nb::dict out;
             state.visit(
                 [&](const char* name, auto& array) { out[name] = to_numpy(std::move(array)); });
             return out;
           })
      .def(
          "restore",
          [](forest::Forest& self, const nb::dict& arrays, int n_threads) {
            forest::ForestView state;
            nb::list kept;
            state.visit([&]<class T>(const char* name, std::span<const T>& array) {
              const nb::object given = arrays[name];
              array = view(nb::cast<Array<T>>(given, false));
              require_fixed(array, given);
              kept.append(given);
            });
            const auto owner = owner_of(kept);
            const nb::gil_scoped_release release;
            forest::from_state(state, n_threads, self, owner);
          },
          nb::arg("arrays"), nb::arg("n_threads") = 1)
      .def_prop_ro("nbytes",
                   [](const forest::Forest& self) { return forest::to_state(self).nbytes(); });

  m.def(
      "number_children",
      [](const Array<std::uint8_t>& leaf_bits, const Array<std::uint64_t>& sizes) {
        std::vector<std::int32_t> children(2 * leaf_bits.size());
        std::span<const std::uint8_t> left = view(leaf_bits);
        std::size_t done = 0;
        for (const std::uint64_t size : view(sizes)) {
          if (size > left.size())
            throw common::InputError("sizes: the trees have more nodes than leaf_bits");
          forest::number_children(left.first(size), children.data() + 2 * done);
          left = left.subspan(size);
          done += size;
        }
        return to_numpy(std::move(children));
      },
      nb::arg("leaf_bits"), nb::arg("sizes"));
  m.def("mean_path_length", &serving::mean_path_length, nb::arg("n"));
}

}  // namespace spinney::bindings
