#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/explain/dependence.h"
#include "spinney/explain/shuffles.h"
#include "table.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

void bind_dependence(nb::module_& m) {
  m.def(
      "score_settings",
      [](const forest::Forest& forest, const BoundTable& bound,
         const std::vector<std::uint32_t>& features, const Matrix<double>& values,
         std::size_t n_trees, std::size_t n_scores, bool one_each, bool hard_votes, bool by_row,
         int n_threads, const OutArray<double>& out) {
        const std::size_t n_sums = by_row ? bound.table.n_rows : 1;
        if (values.shape(1) != features.size() ||
            out.size() != n_sums * values.shape(0) * n_scores) {
          throw common::InputError("values or out has the wrong size for these settings");
        }
        if (hard_votes && !criterion::is_classification(forest.shape.criterion)) {
          throw common::InputError("hard_votes needs a forest of classifiers");
        }
        const explain::Settings settings{features, values.shape(0), values.data()};
        const explain::TreeSum sum{forest, n_trees, n_scores, one_each, hard_votes};
        const nb::gil_scoped_release release;
        (by_row ? explain::score_settings : explain::sum_settings)(sum, bound.table, settings,
                                                                   n_threads, out.data());
      },
      nb::arg("forest"), nb::arg("table"), nb::arg("features"), nb::arg("values"),
      nb::arg("n_trees"), nb::arg("n_scores"), nb::arg("one_each"), nb::arg("hard_votes"),
      nb::arg("by_row"), nb::arg("n_threads"), nb::arg("out"));
  m.def(
      "score_shuffles",
      [](const forest::Forest& forest, const BoundTable& bound,
         std::vector<std::vector<std::uint32_t>> groups, const Matrix<std::int64_t>& orders,
         std::size_t n_trees, std::size_t n_scores, bool one_each, bool hard_votes, int n_threads,
         const OutArray<double>& out) {
        const std::size_t n_settings = groups.size() * orders.shape(0);
        if (orders.shape(1) != bound.table.n_rows || n_threads < 1 ||
            out.size() != bound.table.n_rows * n_settings * n_scores) {
          throw common::InputError("orders or out has the wrong size for these shuffles");
        }
        if (hard_votes && !criterion::is_classification(forest.shape.criterion)) {
          throw common::InputError("hard_votes needs a forest of classifiers");
        }
        const explain::Shuffles shuffles{std::move(groups), orders.shape(0), orders.data()};
        const explain::TreeSum sum{forest, n_trees, n_scores, one_each, hard_votes};
        const nb::gil_scoped_release release;
        explain::score_shuffles(sum, bound.table, shuffles, n_threads, out.data());
      },
      nb::arg("forest"), nb::arg("table"), nb::arg("groups"), nb::arg("orders"), nb::arg("n_trees"),
      nb::arg("n_scores"), nb::arg("one_each"), nb::arg("hard_votes"), nb::arg("n_threads"),
      nb::arg("out"));
}

}  // namespace spinney::bindings
