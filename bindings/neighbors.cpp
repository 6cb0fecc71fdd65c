#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/neighbors/brute_force.h"
#include "spinney/neighbors/kd_tree.h"
#include "tree.h"

namespace nb = nanobind;
using namespace spinney;

namespace {

nb::tuple query(const KdTree& tree, const Matrix<double>& queries, std::size_t k, double eps,
                std::int64_t max_leaves, int n_threads) {
  if (queries.shape(1) != tree.dimension() || k == 0 || k > tree.size()) {
    throw InputError("k-d tree: no such query");
  }
  const std::size_t n = queries.shape(0);
  std::vector<double> distances(n * k);
  std::vector<Place> places(n * k);
  {
    const nb::gil_scoped_release release;
    tree.query(queries.data(), n, {k, eps, max_leaves, n_threads}, distances.data(), places.data());
  }
  return nb::make_tuple(to_numpy(std::move(distances)), to_numpy(std::move(places)));
}

nb::tuple within(const KdTree& tree, const Matrix<double>& queries, const Array<double>& radii,
                 bool count_only, bool sorted, int n_threads) {
  if (queries.shape(1) != tree.dimension() || radii.size() != queries.shape(0)) {
    throw InputError("k-d tree: no such query");
  }
  KdTree::Found found;
  {
    const nb::gil_scoped_release release;
    found =
        tree.within(queries.data(), queries.shape(0), radii.data(), count_only, sorted, n_threads);
  }
  return nb::make_tuple(to_numpy(std::move(found.counts)), to_numpy(std::move(found.places)),
                        to_numpy(std::move(found.distances)));
}

}  // namespace

void bind_neighbors(nb::module_& m) {
  nb::class_<KdTree>(m, "KdTree")
      .def("__init__",
           [](KdTree* self, const Matrix<double>& points, double p, std::size_t leaf_size,
              int n_threads) {
             if (points.shape(0) == 0 || points.shape(1) == 0 || leaf_size == 0 || !(p >= 1)) {
               throw InputError("k-d tree: no points");
             }
             const nb::gil_scoped_release release;
             new (self)
                 KdTree(points.data(), points.shape(0), points.shape(1), p, leaf_size, n_threads);
           })
      .def("query", &query)
      .def("within", &within);
  nb::class_<BruteSelection>(m, "BruteSelection")
      .def("__init__",
           [](BruteSelection* self, std::size_t k, const Array<float>& error) {
             new (self) BruteSelection(
                 error.size(), k, std::vector<float>(error.data(), error.data() + error.size()));
           })
      .def("look",
           [](BruteSelection& self, const Matrix<float>& products, const Array<float>& half_norms,
              std::size_t first, int n_threads) {
             if (products.shape(1) != half_norms.size()) throw InputError("no such products");
             const nb::gil_scoped_release release;
             self.look(products.data(), half_norms.data(), half_norms.size(), first, n_threads);
           })
      .def("finish", [](BruteSelection& self, const Matrix<double>& points,
                        const Matrix<double>& queries, std::size_t k, int n_threads) {
        std::vector<double> distances(queries.shape(0) * k);
        std::vector<Place> places(queries.shape(0) * k);
        {
          const nb::gil_scoped_release release;
          self.finish(points.data(), points.shape(0), points.shape(1), queries.data(), n_threads,
                      distances.data(), places.data());
        }
        return nb::make_tuple(to_numpy(std::move(distances)), to_numpy(std::move(places)));
      });
}
