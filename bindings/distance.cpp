#include <nanobind/stl/string.h>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/distance/closer.h"
#include "spinney/distance/nearest.h"
#include "spinney/distance/string_distances.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

distance::VectorMetric vector_metric_named(const std::string& name) {
  if (name == "euclidean") return distance::VectorMetric::euclidean;
  if (name == "manhattan") return distance::VectorMetric::manhattan;
  if (name == "chebyshev") return distance::VectorMetric::chebyshev;
  if (name == "cosine") return distance::VectorMetric::cosine;
  throw unknown_name("metric", name, {"euclidean", "manhattan", "chebyshev", "cosine"});
}

distance::StringMetric string_metric_named(const std::string& name) {
  if (name == "edit") return distance::StringMetric::edit;
  if (name == "hamming") return distance::StringMetric::hamming;
  throw unknown_name("metric", name, {"edit", "hamming"});
}

distance::Vectors vectors(const Matrix<double>& matrix) {
  return {matrix.data(), matrix.shape(0), matrix.shape(1)};
}

// Strings, with references to the arrays whose memory they read.
struct BoundStrings {
  Array<std::uint32_t> characters;
  Array<std::int64_t> starts;

  BoundStrings(Array<std::uint32_t> characters_, Array<std::int64_t> starts_)
      : characters(std::move(characters_)), starts(std::move(starts_)) {
    std::int64_t before = 0;
    for (std::size_t i = 0; i < starts.shape(0); ++i) {
      const std::int64_t start = starts.data()[i];
      if (start < before) throw common::InputError("Strings: starts must ascend from 0");
      before = start;
    }
    if (starts.shape(0) == 0 || static_cast<std::size_t>(before) > characters.shape(0)) {
      throw common::InputError("Strings: starts must end with the number of characters");
    }
  }

  distance::Strings strings() const {
    return {characters.data(), starts.data(), starts.shape(0) - 1};
  }
};

using Indices = Array<std::int64_t>;

bool* checked(const OutArray<bool>& out, const Indices& x) {
  if (out.size() != x.shape(0)) throw common::InputError("closer: out must be as long as x");
  return out.data();
}

}  // namespace

void bind_distance(nb::module_& m) {
  nb::class_<BoundStrings>(m, "Strings")
      .def(nb::init<Array<std::uint32_t>, Array<std::int64_t>>(), nb::arg("characters"),
           nb::arg("starts"));
  m.def(
      "closer_vectors",
      [](const std::string& metric, const Matrix<double>& rows, const Matrix<double>& pivots,
         const Indices& x, const Indices& a, const Indices& b, int n_threads,
         const OutArray<bool>& out) {
        const distance::VectorMetric kind = vector_metric_named(metric);
        bool* const results = checked(out, x);
        const nb::gil_scoped_release release;
        distance::find_closer(kind, vectors(rows), vectors(pivots), {view(x), view(a), view(b)},
                              n_threads, results);
      },
      nb::arg("metric"), nb::arg("rows"), nb::arg("pivots"), nb::arg("x"), nb::arg("a"),
      nb::arg("b"), nb::arg("n_threads"), nb::arg("out"));
  m.def(
      "closer_strings",
      [](const std::string& metric, const BoundStrings& rows, const BoundStrings& pivots,
         const Indices& x, const Indices& a, const Indices& b, int n_threads,
         const OutArray<bool>& out) {
        const distance::StringMetric kind = string_metric_named(metric);
        bool* const results = checked(out, x);
        const nb::gil_scoped_release release;
        distance::find_closer(kind, rows.strings(), pivots.strings(), {view(x), view(a), view(b)},
                              n_threads, results);
      },
      nb::arg("metric"), nb::arg("rows"), nb::arg("pivots"), nb::arg("x"), nb::arg("a"),
      nb::arg("b"), nb::arg("n_threads"), nb::arg("out"));
  m.def(
      "string_distances",
      [](const std::string& metric, const BoundStrings& queries, const BoundStrings& rows,
         int n_threads, const OutArray<double>& out) {
        const distance::StringMetric kind = string_metric_named(metric);
        const distance::Strings left = queries.strings(), right = rows.strings();
        if (out.ndim() != 2 || out.shape(0) != left.n_rows || out.shape(1) != right.n_rows) {
          throw common::InputError("string_distances: out must have shape (n_queries, n_rows)");
        }
        const nb::gil_scoped_release release;
        distance::string_distances(kind, left, right, n_threads, out.data());
      },
      nb::arg("metric"), nb::arg("queries"), nb::arg("rows"), nb::arg("n_threads"), nb::arg("out"));
  m.def(
      "select_nearest",
      [](const Matrix<double>& matrix, int n_threads, const OutArray<double>& distances,
         const OutArray<std::int64_t>& columns) {
        const std::size_t n_rows = matrix.shape(0);
        if (distances.ndim() != 2 || columns.ndim() != 2 || distances.shape(0) != n_rows ||
            columns.shape(0) != n_rows || distances.shape(1) != columns.shape(1)) {
          throw common::InputError(
              "select_nearest: distances and columns must have shape (n_rows, k)");
        }
        const nb::gil_scoped_release release;
        distance::select_nearest(matrix.data(), n_rows, matrix.shape(1), distances.shape(1),
                                 n_threads, distances.data(), columns.data());
      },
      nb::arg("matrix"), nb::arg("n_threads"), nb::arg("distances"), nb::arg("columns"));
}

}  // namespace spinney::bindings
