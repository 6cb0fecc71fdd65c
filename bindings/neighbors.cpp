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
    throw common::InputError(
        "k-d tree: queries must have as many features as the tree, and k must be from 1 to its "
        "size");
  }
  const std::size_t n = queries.shape(0);
  std::vector<double> distances(n * k);
  std::vector<distance::RowIndex> indices(n * k);
  {
    const nb::gil_scoped_release release;
    tree.query(queries.data(), n, {k, eps, max_leaves, n_threads}, distances.data(),
               indices.data());
  }
  return nb::make_tuple(to_numpy(std::move(distances)), to_numpy(std::move(indices)));
}

nb::tuple to_tuple(neighbors::Found&& found) {
  return nb::make_tuple(to_numpy(std::move(found.counts)), to_numpy(std::move(found.indices)),
                        to_numpy(std::move(found.distances)));
}

template <class Tree>
void check_radii(const Tree& tree, const Matrix<double>& queries, const Array<double>& radii) {
  if (queries.shape(1) != tree.dimension() || radii.size() != queries.shape(0)) {
    throw common::InputError(
        "radius query: queries must have as many features as the tree, and one radius each");
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
  std::vector<distance::RowIndex> counts;
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
  std::vector<distance::RowIndex> indices(queries.shape(0) * k);
  {
    const nb::gil_scoped_release release;
    self.finish(points.data(), points.shape(0), points.shape(1), queries.data(), n_threads,
                distances.data(), indices.data());
  }
  return nb::make_tuple(to_numpy(std::move(distances)), to_numpy(std::move(indices)));
}

template <class T>
double centre(const Matrix<T>& points, const Array<double>& mean, int n_threads,
              const OutArray<float>& centred, const OutArray<float>& half_norms) {
  if (mean.size() != points.shape(1) || centred.size() != points.size() ||
      half_norms.size() != points.shape(0)) {
    throw common::InputError("brute force: points, centre and outputs differ in shape");
  }
  const nb::gil_scoped_release release;
  return neighbors::centre_rows(points.data(), points.shape(0), points.shape(1), mean.data(),
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
    throw common::InputError(
        "ball tree: metric 'function' requires a function, and other metrics none");
  }
  if ((distance.kind == neighbors::BallMetric::haversine && d != 2) ||
      (!distance.weights.empty() && distance.weights.size() != d)) {
    throw common::InputError(
        "ball tree: haversine requires 2 features, and weights one value for each feature");
  }
  if (distance.kind == neighbors::BallMetric::custom) {
    using Row = nb::ndarray<nb::numpy, const double, nb::ndim<1>>;
    // The arrays are views that are valid during the call only.
    distance.custom = [function, d](const double* a, const double* b) {
      return nb::cast<double>(function(Row(a, {d}, nb::none()), Row(b, {d}, nb::none())));
    };
  }
  return distance;
}

template <class T>
void bind_points_of(nb::module_& m, nb::class_<neighbors::BruteSelection>& selection) {
  m.def("centre_rows", &centre<T>, nb::arg("points"), nb::arg("centre"), nb::arg("n_threads"),
        nb::arg("centred"), nb::arg("half_norms"));
  selection.def("finish", &finish<T>, nb::arg("points"), nb::arg("queries"), nb::arg("k"),
                nb::arg("n_threads"));
}

}  // namespace

void bind_neighbors(nb::module_& m) {
  nb::class_<neighbors::KdTree>(m, "KdTree")
      .def(
          "__init__",
          [](neighbors::KdTree* self, const Matrix<double>& points, double p, std::size_t leaf_size,
             int n_threads) {
            if (points.shape(0) == 0 || points.shape(1) == 0 || leaf_size == 0 || !(p >= 1)) {
              throw common::InputError(
                  "k-d tree: expected at least one point, one feature, leaf_size >= 1 and p >= 1");
            }
            const nb::gil_scoped_release release;
            new (self) neighbors::KdTree(points.data(), points.shape(0), points.shape(1), p,
                                         leaf_size, n_threads);
          },
          nb::arg("points"), nb::arg("p"), nb::arg("leaf_size"), nb::arg("n_threads"))
      .def("query", &query, nb::arg("queries"), nb::arg("k"), nb::arg("eps"), nb::arg("max_leaves"),
           nb::arg("n_threads"))
      .def("within", &within, nb::arg("queries"), nb::arg("radii"), nb::arg("sorted"),
           nb::arg("n_threads"))
      .def("count_within", &count_within, nb::arg("queries"), nb::arg("radii"),
           nb::arg("n_threads"));
  nb::class_<neighbors::BallTree>(m, "BallTree")
      .def(
          "__init__",
          [](neighbors::BallTree* self, const Matrix<double>& points, const std::string& metric,
             double p, std::vector<double> weights, nb::object function, std::size_t leaf_size) {
            if (points.shape(0) == 0 || points.shape(1) == 0 || leaf_size == 0) {
              throw common::InputError(
                  "ball tree: expected at least one point, one feature and leaf_size >= 1");
            }
            new (self) neighbors::BallTree(
                points.data(), points.shape(0), points.shape(1),
                ball_distance(metric, p, std::move(weights), function, points.shape(1)), leaf_size);
          },
          nb::arg("points"), nb::arg("metric"), nb::arg("p"), nb::arg("weights"),
          nb::arg("function").none(), nb::arg("leaf_size"))
      .def(
          "query",
          [](const neighbors::BallTree& self, const Matrix<double>& queries, std::size_t k,
             int n_threads) {
            if (queries.shape(1) != self.dimension() || k == 0 || k > self.size()) {
              throw common::InputError(
                  "ball tree: queries must have as many features as the tree, and k must be from "
                  "1 to its size");
            }
            const std::size_t n = queries.shape(0);
            std::vector<double> distances(n * k);
            std::vector<distance::RowIndex> indices(n * k);
            if (self.is_parallel()) {
              const nb::gil_scoped_release release;
              self.query(queries.data(), n, k, n_threads, distances.data(), indices.data());
            } else {
              self.query(queries.data(), n, k, 1, distances.data(),
                         indices.data());  // calls Python
            }
            return nb::make_tuple(to_numpy(std::move(distances)), to_numpy(std::move(indices)));
          },
          nb::arg("queries"), nb::arg("k"), nb::arg("n_threads"))
      .def(
          "within",
          [](const neighbors::BallTree& self, const Matrix<double>& queries,
             const Array<double>& radii, bool sorted, int n_threads) {
            check_radii(self, queries, radii);
            const auto search = [&] {
              return self.within(queries.data(), queries.shape(0), radii.data(), sorted, n_threads);
            };
            if (!self.is_parallel()) return to_tuple(search());  // calls Python
            neighbors::Found found;
            {
              const nb::gil_scoped_release release;
              found = search();
            }
            return to_tuple(std::move(found));
          },
          nb::arg("queries"), nb::arg("radii"), nb::arg("sorted"), nb::arg("n_threads"));
  nb::class_<neighbors::BruteSelection> selection(m, "BruteSelection");
  selection
      .def(
          "__init__",
          [](neighbors::BruteSelection* self, std::size_t k, const Array<float>& error) {
            new (self) neighbors::BruteSelection(
                error.size(), k, std::vector<float>(error.data(), error.data() + error.size()));
          },
          nb::arg("k"), nb::arg("error"))
      .def(
          "add_block",
          [](neighbors::BruteSelection& self, const Matrix<float>& products,
             const Array<float>& half_norms, std::size_t first, int n_threads) {
            if (products.shape(1) != half_norms.size()) {
              throw common::InputError(
                  "brute force: products and half_norms must have equally many rows");
            }
            const nb::gil_scoped_release release;
            self.add_block(products.data(), half_norms.data(), half_norms.size(), first, n_threads);
          },
          nb::arg("products"), nb::arg("half_norms"), nb::arg("first"), nb::arg("n_threads"));
  bind_points_of<double>(m, selection);
  bind_points_of<float>(m, selection);
}

}  // namespace spinney::bindings
