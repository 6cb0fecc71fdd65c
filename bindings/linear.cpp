#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/linear/coordinate_descent.h"
#include "spinney/linear/leave_one_out.h"
#include "spinney/linear/logistic.h"
#include "spinney/linear/moments.h"
#include "spinney/linear/row_products.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

template <class T>
using AnyMatrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

template <class T>
linear::DenseRows<T> dense_rows(const AnyMatrix<T>& x) {
  return {x.data(), x.stride(0), x.stride(1), x.shape(0), x.shape(1)};
}

template <class Index>
linear::SparseRows<Index> sparse_rows(const Array<double>& values, const Array<Index>& columns,
                                      const Array<Index>& starts, std::size_t n_features) {
  if (starts.size() == 0 || values.size() != columns.size() ||
      static_cast<std::size_t>(starts.data()[starts.size() - 1]) > values.size()) {
    throw common::InputError("sparse rows: values, columns and starts have inconsistent lengths");
  }
  return {values.data(), columns.data(), starts.data(), starts.size() - 1, n_features};
}

// Returns null for an empty array.
const double* optional(const Array<double>& values, std::size_t n_rows) {
  if (values.size() == 0) return nullptr;
  if (values.size() != n_rows)
    throw common::InputError("linear model: weights must have one value per row");
  return values.data();
}

linear::WeightedTargets row_targets(const Matrix<double>& y, const Array<double>& weights,
                                    std::size_t n_rows) {
  if (y.shape(0) != n_rows)
    throw common::InputError("linear model: y must have one row per row of X");
  return {y.data(), y.shape(1), optional(weights, n_rows)};
}

template <class T>
nb::object moments(const AnyMatrix<T>& x, const Matrix<double>& y, const Array<double>& weights,
                   const Array<double>& centre, int n_threads) {
  const linear::DenseRows<T> rows = dense_rows(x);
  const linear::WeightedTargets targets = row_targets(y, weights, rows.n_rows);
  if (centre.size() != rows.n_features + targets.n_targets) {
    throw common::InputError("linear model: centre must have one value per column");
  }
  std::vector<double> out;
  {
    const nb::gil_scoped_release release;
    out = linear::sum_moments(rows, targets, centre.data(), n_threads);
  }
  return to_numpy(std::move(out));
}

template <class Index>
nb::object sparse_moments(const Array<double>& values, const Array<Index>& columns,
                          const Array<Index>& starts, std::size_t n_features,
                          const Matrix<double>& y, const Array<double>& weights, int n_threads) {
  const linear::SparseRows<Index> rows = sparse_rows(values, columns, starts, n_features);
  const linear::WeightedTargets targets = row_targets(y, weights, rows.n_rows);
  std::vector<double> out;
  {
    const nb::gil_scoped_release release;
    out = linear::sum_moments(rows, targets, n_threads);
  }
  return to_numpy(std::move(out));
}

nb::tuple to_tuple(linear::Derivatives&& result) {
  return nb::make_tuple(result.loss, to_numpy(std::move(result.gradient)),
                        to_numpy(std::move(result.hessian)));
}

template <class Measure>
nb::tuple release_and(const Measure& measure) {
  linear::Derivatives result;
  {
    const nb::gil_scoped_release release;
    result = measure();
  }
  return to_tuple(std::move(result));
}

linear::BinaryProblem binary_problem(const Array<double>& targets, const Array<double>& weights,
                                     const Array<double>& coefficients, std::size_t n_rows,
                                     std::size_t n_features) {
  if (targets.size() != n_rows || coefficients.size() != n_features + 1) {
    throw common::InputError(
        "logistic regression: X, targets and coefficients have inconsistent shapes");
  }
  return {targets.data(), optional(weights, n_rows), coefficients.data()};
}

template <class T>
nb::tuple binary(const AnyMatrix<T>& x, const Array<double>& centre, const Array<double>& targets,
                 const Array<double>& weights, const Array<double>& coefficients, bool with_hessian,
                 int n_threads) {
  const linear::DenseRows<T> rows = dense_rows(x);
  if (centre.size() != rows.n_features)
    throw common::InputError("logistic regression: centre must have one value per column");
  const auto problem = binary_problem(targets, weights, coefficients, rows.n_rows, rows.n_features);
  return release_and([&] {
    return linear::measure_binary(rows, centre.data(), problem, with_hessian, n_threads);
  });
}

template <class Index>
nb::tuple sparse_binary(const Array<double>& values, const Array<Index>& columns,
                        const Array<Index>& starts, std::size_t n_features,
                        const Array<double>& targets, const Array<double>& weights,
                        const Array<double>& coefficients, bool with_hessian, int n_threads) {
  const linear::SparseRows<Index> rows = sparse_rows(values, columns, starts, n_features);
  const auto problem = binary_problem(targets, weights, coefficients, rows.n_rows, n_features);
  return release_and(
      [&] { return linear::measure_binary(rows, problem, with_hessian, n_threads); });
}

linear::MultinomialProblem multinomial_problem(const Array<std::int32_t>& labels,
                                               const Array<double>& weights,
                                               const Matrix<double>& coefficients,
                                               std::size_t n_rows, std::size_t n_features) {
  if (labels.size() != n_rows || coefficients.shape(1) != n_features + 1) {
    throw common::InputError(
        "logistic regression: X, targets and coefficients have inconsistent shapes");
  }
  const auto n_classes = static_cast<std::int64_t>(coefficients.shape(0));
  for (std::size_t i = 0; i < n_rows; ++i) {
    if (labels.data()[i] < 0 || labels.data()[i] >= n_classes) {
      throw common::InputError("logistic regression: a label is out of range");
    }
  }
  return {labels.data(), optional(weights, n_rows), coefficients.data(), coefficients.shape(0)};
}

template <class T>
nb::tuple multinomial(const AnyMatrix<T>& x, const Array<double>& centre,
                      const Array<std::int32_t>& labels, const Array<double>& weights,
                      const Matrix<double>& coefficients, bool with_hessian, int n_threads) {
  const linear::DenseRows<T> rows = dense_rows(x);
  if (centre.size() != rows.n_features)
    throw common::InputError("logistic regression: centre must have one value per column");
  const auto problem =
      multinomial_problem(labels, weights, coefficients, rows.n_rows, rows.n_features);
  return release_and([&] {
    return linear::measure_multinomial(rows, centre.data(), problem, with_hessian, n_threads);
  });
}

template <class Index>
nb::tuple sparse_multinomial(const Array<double>& values, const Array<Index>& columns,
                             const Array<Index>& starts, std::size_t n_features,
                             const Array<std::int32_t>& labels, const Array<double>& weights,
                             const Matrix<double>& coefficients, int n_threads) {
  const linear::SparseRows<Index> rows = sparse_rows(values, columns, starts, n_features);
  const auto problem = multinomial_problem(labels, weights, coefficients, rows.n_rows, n_features);
  return release_and([&] { return linear::measure_multinomial(rows, problem, n_threads); });
}

template <class T>
nb::object loo(const AnyMatrix<T>& x, const Matrix<double>& y, const Array<double>& weights,
               const Array<double>& centre, const Matrix<double>& basis,
               const Matrix<double>& shrinkage, const Array<double>& coefficients,
               const Array<double>& intercepts, double base_leverage, int n_threads,
               const OutArray<double>& predictions) {
  const linear::DenseRows<T> rows = dense_rows(x);
  const linear::WeightedTargets targets = row_targets(y, weights, rows.n_rows);
  const std::size_t n_alphas = shrinkage.shape(0), n_basis = basis.shape(1);
  if (centre.size() != rows.n_features || basis.shape(0) != rows.n_features ||
      shrinkage.shape(1) != n_basis || intercepts.size() != targets.n_targets ||
      coefficients.size() != n_alphas * targets.n_targets * n_basis ||
      (predictions.size() != 0 &&
       predictions.size() != rows.n_rows * targets.n_targets * n_alphas)) {
    throw common::InputError("ridge regression: the arrays have inconsistent shapes");
  }
  const linear::RidgePath path{centre.data(),       basis.data(),      n_basis,  shrinkage.data(),
                               coefficients.data(), intercepts.data(), n_alphas, base_leverage};
  std::vector<double> out;
  {
    const nb::gil_scoped_release release;
    out = linear::leave_one_out(rows, targets, path, n_threads,
                                predictions.size() == 0 ? nullptr : predictions.data());
  }
  return to_numpy(std::move(out));
}

linear::Coefficients coefficients_of(const Matrix<double>& values, const Array<double>& centre,
                                     std::size_t n_rows, std::size_t n_features,
                                     const OutArray<double>& out) {
  if (values.shape(1) != n_features || (centre.size() != 0 && centre.size() != n_features) ||
      out.size() != n_rows * values.shape(0)) {
    throw common::InputError(
        "linear model: X, coefficients, centre and out have inconsistent shapes");
  }
  return {values.data(), values.shape(0), centre.size() == 0 ? nullptr : centre.data()};
}

template <class T>
void products(const AnyMatrix<T>& x, const Matrix<double>& coefficients,
              const Array<double>& centre, int n_threads, const OutArray<double>& out) {
  const linear::DenseRows<T> rows = dense_rows(x);
  const linear::Coefficients by =
      coefficients_of(coefficients, centre, rows.n_rows, rows.n_features, out);
  const nb::gil_scoped_release release;
  linear::multiply_rows(rows, by, n_threads, out.data());
}

template <class Index>
void sparse_products(const Array<double>& values, const Array<Index>& columns,
                     const Array<Index>& starts, const Matrix<double>& coefficients, int n_threads,
                     const OutArray<double>& out) {
  const linear::SparseRows<Index> rows =
      sparse_rows(values, columns, starts, coefficients.shape(1));
  const linear::Coefficients by =
      coefficients_of(coefficients, {}, rows.n_rows, rows.n_features, out);
  const nb::gil_scoped_release release;
  linear::multiply_rows(rows, by, n_threads, out.data());
}

linear::Penalty penalty_of(const Array<double>& l1, const Array<double>& l2, std::size_t size) {
  if (l1.size() != size || l2.size() != size) {
    throw common::InputError("coordinate descent: l1 and l2 must have one value per coordinate");
  }
  return {l1.data(), l2.data()};
}

nb::tuple by_matrix(const Matrix<double>& hessian, const Array<double>& gradient,
                    const Array<double>& l1, const Array<double>& l2, double tolerance,
                    std::size_t max_sweeps, const OutArray<double>& w) {
  const std::size_t size = gradient.size();
  if (hessian.shape(0) != size || hessian.shape(1) != size || w.size() != size) {
    throw common::InputError(
        "coordinate descent: hessian, gradient and w have inconsistent shapes");
  }
  const linear::Penalty penalty = penalty_of(l1, l2, size);
  linear::Descent result;
  {
    const nb::gil_scoped_release release;
    result = linear::descend_by_matrix(hessian.data(), gradient.data(), size, penalty, tolerance,
                                       max_sweeps, w.data());
  }
  return nb::make_tuple(result.n_sweeps, result.violation);
}

template <class T>
void bind_dense(nb::module_& m) {
  m.def("sum_moments", &moments<T>, nb::arg("X"), nb::arg("y"), nb::arg("weights"),
        nb::arg("centre"), nb::arg("n_threads"));
  m.def("measure_binary", &binary<T>, nb::arg("X"), nb::arg("centre"), nb::arg("targets"),
        nb::arg("weights"), nb::arg("coefficients"), nb::arg("with_hessian"), nb::arg("n_threads"));
  m.def("measure_multinomial", &multinomial<T>, nb::arg("X"), nb::arg("centre"), nb::arg("labels"),
        nb::arg("weights"), nb::arg("coefficients"), nb::arg("with_hessian"), nb::arg("n_threads"));
  m.def("leave_one_out", &loo<T>, nb::arg("X"), nb::arg("y"), nb::arg("weights"), nb::arg("centre"),
        nb::arg("basis"), nb::arg("shrinkage"), nb::arg("coefficients"), nb::arg("intercepts"),
        nb::arg("base_leverage"), nb::arg("n_threads"), nb::arg("predictions"));
  m.def("multiply_rows", &products<T>, nb::arg("X"), nb::arg("coefficients"), nb::arg("centre"),
        nb::arg("n_threads"), nb::arg("out"));
}

template <class Index>
void bind_sparse(nb::module_& m) {
  m.def("sum_sparse_moments", &sparse_moments<Index>, nb::arg("values"), nb::arg("columns"),
        nb::arg("starts"), nb::arg("n_features"), nb::arg("y"), nb::arg("weights"),
        nb::arg("n_threads"));
  m.def("measure_sparse_binary", &sparse_binary<Index>, nb::arg("values"), nb::arg("columns"),
        nb::arg("starts"), nb::arg("n_features"), nb::arg("targets"), nb::arg("weights"),
        nb::arg("coefficients"), nb::arg("with_hessian"), nb::arg("n_threads"));
  m.def("measure_sparse_multinomial", &sparse_multinomial<Index>, nb::arg("values"),
        nb::arg("columns"), nb::arg("starts"), nb::arg("n_features"), nb::arg("labels"),
        nb::arg("weights"), nb::arg("coefficients"), nb::arg("n_threads"));
  m.def("multiply_sparse_rows", &sparse_products<Index>, nb::arg("values"), nb::arg("columns"),
        nb::arg("starts"), nb::arg("coefficients"), nb::arg("n_threads"), nb::arg("out"));
}

}  // namespace

void bind_linear(nb::module_& m) {
  bind_dense<double>(m);
  bind_dense<float>(m);
  bind_sparse<std::int32_t>(m);
  bind_sparse<std::int64_t>(m);
  m.def("descend_by_matrix", &by_matrix, nb::arg("hessian"), nb::arg("gradient"), nb::arg("l1"),
        nb::arg("l2"), nb::arg("tolerance"), nb::arg("max_sweeps"), nb::arg("w"));
}

}  // namespace spinney::bindings
