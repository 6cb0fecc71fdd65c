#include "table.h"

#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "spinney/common/check.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

template <class Array>
table::Dtype dtype_of(const Array& array) {
  if (array.dtype() == nb::dtype<double>()) return table::Dtype::float64;
  if (array.dtype() == nb::dtype<float>()) return table::Dtype::float32;
  if (array.dtype() == nb::dtype<std::int32_t>()) return table::Dtype::int32;
  throw common::InputError("a column must be float64, float32 or int32");
}

using Matrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using Vector = nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu>;

BoundTable from_matrix(nb::object array, bool known_finite) {
  const auto matrix = nb::cast<Matrix>(array);
  BoundTable bound;
  bound.table.n_rows = matrix.shape(0);
  bound.table.known_finite = known_finite;
  const auto item = static_cast<std::ptrdiff_t>(matrix.itemsize());
  table::Column column;
  column.dtype = dtype_of(matrix);
  column.stride = matrix.stride(0) * item;
  bound.table.columns.reserve(matrix.shape(1));
  for (std::size_t f = 0; f < matrix.shape(1); ++f) {
    column.data = static_cast<const std::byte*>(matrix.data()) +
                  static_cast<std::ptrdiff_t>(f) * matrix.stride(1) * item;
    bound.table.columns.push_back(column);
  }
  bound.owners.push_back(std::move(array));
  return bound;
}

// n_categories[f] < 0 marks a numeric column.
BoundTable from_columns(nb::list arrays, const std::vector<std::int32_t>& n_categories) {
  BoundTable bound;
  if (n_categories.size() != nb::len(arrays)) {
    throw common::InputError("n_categories must have one element per column");
  }
  std::size_t f = 0;
  for (nb::handle handle : arrays) {
    const auto vector = nb::cast<Vector>(handle);
    if (f > 0 && vector.shape(0) != bound.table.n_rows) {
      throw common::InputError("the columns of a table must have equal length");
    }
    table::Column column;
    column.dtype = dtype_of(vector);
    column.kind = n_categories[f] < 0 ? table::ColumnKind::numeric : table::ColumnKind::categorical;
    column.n_categories = std::max(0, n_categories[f]);
    column.stride = vector.stride(0) * static_cast<std::ptrdiff_t>(vector.itemsize());
    column.data = static_cast<const std::byte*>(vector.data());
    bound.table.n_rows = vector.shape(0);
    bound.table.columns.push_back(column);
    ++f;
  }
  bound.owners.push_back(std::move(arrays));
  return bound;
}

using Indices = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

BoundTable from_csc(nb::object data, const Indices& rows, const Indices& starts,
                    std::size_t n_rows) {
  const auto values = nb::cast<Vector>(data);
  BoundTable bound;
  bound.table.n_rows = n_rows;
  const auto item = static_cast<std::ptrdiff_t>(values.itemsize());
  for (std::size_t f = 0; f + 1 < starts.shape(0); ++f) {
    const std::int32_t start = starts.data()[f];
    table::Column column;
    column.kind = table::ColumnKind::sparse;
    column.dtype = dtype_of(values);
    column.stride = item;
    column.data = static_cast<const std::byte*>(values.data()) + start * item;
    column.rows = rows.data() + start;
    column.n_stored = static_cast<std::size_t>(starts.data()[f + 1] - start);
    bound.table.columns.push_back(column);
  }
  bound.owners.push_back(std::move(data));
  bound.owners.push_back(nb::cast(rows));
  return bound;
}

}  // namespace

void bind_table(nb::module_& m) {
  nb::class_<BoundTable>(m, "Table")
      .def_static("from_matrix", &from_matrix, nb::arg("matrix"), nb::arg("known_finite") = true)
      .def_static("from_columns", &from_columns, nb::arg("columns"), nb::arg("n_categories"))
      .def_static("from_csc", &from_csc, nb::arg("data"), nb::arg("rows"), nb::arg("starts"),
                  nb::arg("n_rows"))
      .def_prop_ro("n_rows", [](const BoundTable& t) { return t.table.n_rows; })
      .def_prop_ro("n_features", [](const BoundTable& t) { return t.table.n_features(); });
}

}  // namespace spinney::bindings
