#include "spinney/distance/gower.h"

#include <algorithm>

#include "bindings.h"
#include "spinney/common/check.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

using Numbers = Matrix<double>;
using Codes = Matrix<std::int32_t>;

// Rows, with references to the arrays whose memory they read. Arrays have shape (n_columns,
// n_rows).
struct BoundMixedRows {
  Numbers numbers;
  Codes codes;

  BoundMixedRows(Numbers numbers_, Codes codes_)
      : numbers(std::move(numbers_)), codes(std::move(codes_)) {
    if (numbers.shape(1) != codes.shape(1)) {
      throw common::InputError("MixedRows: numbers and codes must have equally many rows");
    }
  }

  distance::MixedRows rows() const { return {numbers.data(), codes.data(), numbers.shape(1)}; }
};

struct BoundMixedColumns {
  Array<double> number_scales, number_weights, code_weights;
  Array<bool> number_misses, code_misses;

  distance::MixedColumns columns() const {
    return {number_scales.shape(0), code_weights.shape(0), number_scales.data(),
            number_weights.data(),  code_weights.data(),   number_misses.data(),
            code_misses.data()};
  }

  BoundMixedColumns(Array<double> number_scales_, Array<double> number_weights_,
                    Array<bool> number_misses_, Array<double> code_weights_,
                    Array<bool> code_misses_)
      : number_scales(std::move(number_scales_)),
        number_weights(std::move(number_weights_)),
        code_weights(std::move(code_weights_)),
        number_misses(std::move(number_misses_)),
        code_misses(std::move(code_misses_)) {
    if (number_scales.shape(0) != number_weights.shape(0) ||
        number_scales.shape(0) != number_misses.shape(0) ||
        code_weights.shape(0) != code_misses.shape(0)) {
      throw common::InputError("MixedColumns: arrays of the same columns must have equal lengths");
    }
    // NaN would break the counting of columns of equal weight, since it does not equal itself.
    for (const Array<double>* const weights : {&number_weights, &code_weights}) {
      const double* const first = weights->data();
      if (!std::all_of(first, first + weights->shape(0), [](double w) { return w >= 0; })) {
        throw common::InputError("MixedColumns: weights must not be negative or NaN");
      }
    }
  }
};

void check(const BoundMixedColumns& columns, const BoundMixedRows& rows) {
  if (rows.numbers.shape(0) != columns.number_scales.shape(0) ||
      rows.codes.shape(0) != columns.code_weights.shape(0)) {
    throw common::InputError("gower: rows must have the columns that the distance was built for");
  }
}

}  // namespace

void bind_gower(nb::module_& m) {
  nb::class_<BoundMixedRows>(m, "MixedRows")
      .def(nb::init<Numbers, Codes>(), nb::arg("numbers"), nb::arg("codes"));
  nb::class_<BoundMixedColumns>(m, "MixedColumns")
      .def(nb::init<Array<double>, Array<double>, Array<bool>, Array<double>, Array<bool>>(),
           nb::arg("number_scales"), nb::arg("number_weights"), nb::arg("number_misses"),
           nb::arg("code_weights"), nb::arg("code_misses"));
  m.def(
      "nearest_gower",
      [](const BoundMixedColumns& columns, const BoundMixedRows& queries,
         const BoundMixedRows& rows, int n_threads, const OutArray<double>& distances,
         const OutArray<std::int64_t>& indices) {
        check(columns, queries);
        check(columns, rows);
        const distance::MixedRows query_rows = queries.rows();
        if (distances.ndim() != 2 || indices.ndim() != 2 ||
            distances.shape(0) != query_rows.n_rows || indices.shape(0) != query_rows.n_rows ||
            distances.shape(1) != indices.shape(1)) {
          throw common::InputError("gower: distances and indices must have shape (n_queries, k)");
        }
        const nb::gil_scoped_release release;
        distance::find_nearest_gower(columns.columns(), query_rows, rows.rows(), distances.shape(1),
                                     n_threads, distances.data(), indices.data());
      },
      nb::arg("columns"), nb::arg("queries"), nb::arg("rows"), nb::arg("n_threads"),
      nb::arg("distances"), nb::arg("indices"));
  m.def(
      "gower_distances",
      [](const BoundMixedColumns& columns, const BoundMixedRows& queries,
         const BoundMixedRows& rows, int n_threads, const OutArray<double>& out) {
        check(columns, queries);
        check(columns, rows);
        const distance::MixedRows left = queries.rows(), right = rows.rows();
        if (out.ndim() != 2 || out.shape(0) != left.n_rows || out.shape(1) != right.n_rows) {
          throw common::InputError("gower: out must have shape (n_queries, n_rows)");
        }
        const nb::gil_scoped_release release;
        distance::gower_distances(columns.columns(), left, right, n_threads, out.data());
      },
      nb::arg("columns"), nb::arg("queries"), nb::arg("rows"), nb::arg("n_threads"),
      nb::arg("out"));
}

}  // namespace spinney::bindings
