#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/neighbors/ball_tree.h"
#include "spinney/neighbors/brute_force.h"
#include "spinney/neighbors/kd_tree.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

nb::tuple query(const neighbors::KdTree& tree, const Matrix<double>& queries, std::size_t k,
                double eps, std::int64_t max_leaves, int n_threads) {
  if (queries.shape(1) != tree.dimension() || k == 0 || k > tree.size()) {
    throw common::InputError("k-d tree: no such query");
  }
  const std::size_t n = queries.shape(0);
  std::vector<double> distances(n * k);
  std::vector<distance::Place> places(n * k);
  {
    const nb::gil_scoped_release release;
    tree.query(queries.data(), n, {k, eps, max_leaves, n_threads}, distances.data(), places.data());
  }
  return nb::make_tuple(to_numpy(std::move(distances)), to_numpy(std::move(places)));
}

nb::tuple to_tuple(neighbors::Found&& found) {
  return nb::make_tuple(to_numpy(std::move(found.counts)), to_numpy(std::move(found.places)),
                        to_numpy(std::move(found.distances)));
}

template <class Tree>
void check_radii(const Tree& tree, const Matrix<double>& queries, const Array<double>& radii) {
  if (queries.shape(1) != tree.dimension() || radii.size() != queries.shape(0)) {
    throw common::InputError("tree of neighbours: no such query");
  }
}

nb::tuple within(const neighbors::KdTree& tree, const Matrix<double>& queries,
                 const Array<double>& radii, bool sorted, int n_threads) {
  check_radii(tree, queries, radii);
  neighbors::Found found;
  {
    const nb::gil_scoped_release release;
    found = tree.within(queries.data(), queries.shape(0), radii.data(), sorted, n_threads);
  }
  return to_tuple(std::move(found));
}

nb::object count_within(const neighbors::KdTree& tree, const Matrix<double>& queries,
                        const Array<double>& radii, int n_threads) {
  check_radii(tree, queries, radii);
  std::vector<distance::Place> counts;
  {
    const nb::gil_scoped_release release;
    counts = tree.count_within(queries.data(), queries.shape(0), radii.data(), n_threads);
  }
  return nb::cast(to_numpy(std::move(counts)));
}

template <class T>
nb::tuple finish(neighbors::BruteSelection& self, const Matrix<T>& points,
                 const Matrix<double>& queries, std::size_t k, int n_threads) {
  std::vector<double> distances(queries.shape(0) * k);
  std::vector<distance::Place> places(queries.shape(0) * k);
  {
    const nb::gil_scoped_release release;
    self.finish(points.data(), points.shape(0), points.shape(1), queries.data(), n_threads,
                distances.data(), places.data());
  }
  return nb::make_tuple(to_numpy(std::move(distances)), to_numpy(std::move(places)));
}

template <class T>
double centre(const Matrix<T>& points, const Array<double>& about, int n_threads,
              const OutArray<float>& centred, const OutArray<float>& half_norms) {
  if (about.size() != points.shape(1) || centred.size() != points.size() ||
      half_norms.size() != points.shape(0)) {
    throw common::InputError("brute force: the arrays do not fit together");
  }
  const nb::gil_scoped_release release;
  return neighbors::centre_rows(points.data(), points.shape(0), points.shape(1), about.data(),
                                n_threads, centred.data(), half_norms.data());
}

neighbors::BallMetric ball_metric_named(const std::string& name) {
  if (name == "minkowski") return neighbors::BallMetric::minkowski;
  if (name == "haversine") return neighbors::BallMetric::haversine;
  if (name == "hamming") return neighbors::BallMetric::hamming;
  if (name == "canberra") return neighbors::BallMetric::canberra;
  if (name == "jaccard") return neighbors::BallMetric::jaccard;
  if (name == "rogerstanimoto" || name == "sokalmichener") {
    return neighbors::BallMetric::rogers_tanimoto;
  }
  if (name == "sokalsneath") return neighbors::BallMetric::sokal_sneath;
  if (name == "function") return neighbors::BallMetric::custom;
  throw unknown_name("metric", name,
                     {"minkowski", "haversine", "hamming", "canberra", "jaccard", "rogerstanimoto",
                      "sokalmichener", "sokalsneath", "function"});
}

neighbors::BallDistance ball_distance(const std::string& name, double p,
                                      std::vector<double> weights, nb::object function,
                                      std::size_t d) {
  neighbors::BallDistance distance;
  distance.p = p;
  distance.weights = std::move(weights);
  distance.kind = ball_metric_named(name);
  if ((distance.kind == neighbors::BallMetric::custom) == function.is_none()) {
    throw common::InputError("ball tree: metric 'function' and a function go together");
  }
  if ((distance.kind == neighbors::BallMetric::haversine && d != 2) ||
      (!distance.weights.empty() && distance.weights.size() != d)) {
    throw common::InputError("ball tree: the metric does not fit the number of columns");
  }
  if (distance.kind == neighbors::BallMetric::custom) {
    using Row = nb::ndarray<nb::numpy, const double, nb::ndim<1>>;
    // Views of rows that live as long as the call.
    distance.custom = [function, d](const double* a, const double* b) {
      return nb::cast<double>(function(Row(a, {d}, nb::none()), Row(b, {d}, nb::none())));
    };
  }
  return distance;
}

}  // namespace

void bind_neighbors(nb::module_& m) {
  nb::class_<neighbors::KdTree>(m, "KdTree")
      .def("__init__",
           [](neighbors::KdTree* self, const Matrix<double>& points, double p,
              std::size_t leaf_size, int n_threads) {
             if (points.shape(0) == 0 || points.shape(1) == 0 || leaf_size == 0 || !(p >= 1)) {
               throw common::InputError("k-d tree: no points");
             }
             const nb::gil_scoped_release release;
             new (self) neighbors::KdTree(points.data(), points.shape(0), points.shape(1), p,
                                          leaf_size, n_threads);
           })
      .def("query", &query)
      .def("within", &within)
      .def("count_within", &count_within);
  nb::class_<neighbors::BallTree>(m, "BallTree")
      .def(
          "__init__",
          [](neighbors::BallTree* self, const Matrix<double>& points, const std::string& metric,
             double p, std::vector<double> weights, nb::object function, std::size_t leaf_size) {
            if (points.shape(0) == 0 || points.shape(1) == 0 || leaf_size == 0) {
              throw common::InputError("ball tree: no points");
            }
            new (self) neighbors::BallTree(
                points.data(), points.shape(0), points.shape(1),
                ball_distance(metric, p, std::move(weights), function, points.shape(1)), leaf_size);
          },
          nb::arg("points"), nb::arg("metric"), nb::arg("p"), nb::arg("weights"),
          nb::arg("function").none(), nb::arg("leaf_size"))
      .def("query",
           [](const neighbors::BallTree& self, const Matrix<double>& queries, std::size_t k,
              int n_threads) {
             if (queries.shape(1) != self.dimension() || k == 0 || k > self.size()) {
               throw common::InputError("ball tree: no such query");
             }
             const std::size_t n = queries.shape(0);
             std::vector<double> distances(n * k);
             std::vector<distance::Place> places(n * k);
             if (self.is_parallel()) {
               const nb::gil_scoped_release release;
               self.query(queries.data(), n, k, n_threads, distances.data(), places.data());
             } else {
               self.query(queries.data(), n, k, 1, distances.data(), places.data());  // asks Python
             }
             return nb::make_tuple(to_numpy(std::move(distances)), to_numpy(std::move(places)));
           })
      .def("within", [](const neighbors::BallTree& self, const Matrix<double>& queries,
                        const Array<double>& radii, bool sorted, int n_threads) {
        check_radii(self, queries, radii);
        const auto ask = [&] {
          return self.within(queries.data(), queries.shape(0), radii.data(), sorted, n_threads);
        };
        if (!self.is_parallel()) return to_tuple(ask());  // asks Python
        neighbors::Found found;
        {
          const nb::gil_scoped_release release;
          found = ask();
        }
        return to_tuple(std::move(found));
      });
  m.def("centre_rows", &centre<double>);
  m.def("centre_rows", &centre<float>);
  nb::class_<neighbors::BruteSelection>(m, "BruteSelection")
      .def("__init__",
           [](neighbors::BruteSelection* self, std::size_t k, const Array<float>& error) {
             new (self) neighbors::BruteSelection(
                 error.size(), k, std::vector<float>(error.data(), error.data() + error.size()));
           })
      .def("look",
           [](neighbors::BruteSelection& self, const Matrix<float>& products,
              const Array<float>& half_norms, std::size_t first, int n_threads) {
             if (products.shape(1) != half_norms.size()) {
               throw common::InputError("no such products");
             }
             const nb::gil_scoped_release release;
             self.look(products.data(), half_norms.data(), half_norms.size(), first, n_threads);
           })
      .def("finish", &finish<double>)
      .def("finish", &finish<float>);
}

}  // namespace spinney::bindings
