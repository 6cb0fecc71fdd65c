#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/linear/perceptron.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

using Indices = Array<std::int32_t>;

linear::PerceptronVariant variant_named(const std::string& name) {
  if (name == "last") return linear::PerceptronVariant::last;
  if (name == "average") return linear::PerceptronVariant::average;
  if (name == "pocket") return linear::PerceptronVariant::pocket;
  throw unknown_name("variant", name, {"last", "average", "pocket"});
}

// Dense rows have no `columns` and `starts`. Each row of `steps` is a problem. Returns (planes
// after the last pass, results, mistakes, passes, overflow), flat. A plane is its coefficients and
// intercept.
template <class Value>
nb::tuple run(const Array<Value>& values, const std::optional<Indices>& columns,
              const std::optional<Indices>& starts, std::size_t n_rows, std::size_t n_features,
              const Matrix<double>& steps, const Matrix<double>& planes,
              const Array<std::uint32_t>& seeds, const linear::PerceptronOptions& options,
              int n_threads) {
  const std::size_t n_problems = steps.shape(0);
  const bool dense = !starts;
  if (dense
          ? values.shape(0) != n_rows * n_features
          : (!columns || starts->shape(0) != n_rows + 1 || columns->shape(0) != values.shape(0))) {
    throw common::InputError("perceptron: arrays of the rows have inconsistent lengths");
  }
  if (steps.shape(1) != n_rows || seeds.shape(0) != n_problems || planes.shape(0) != n_problems ||
      planes.shape(1) != n_features + 1) {
    throw common::InputError("perceptron: arrays of the problems have inconsistent shapes");
  }
  const linear::PerceptronRows<Value> rows{values.data(), dense ? nullptr : columns->data(),
                                           dense ? nullptr : starts->data(), n_rows, n_features};
  std::vector<linear::PerceptronProblem> problems(n_problems);
  for (std::size_t p = 0; p < n_problems; ++p) {
    const double* const plane = planes.data() + p * (n_features + 1);
    problems[p].steps = steps.data() + p * n_rows;
    problems[p].seed = seeds.data()[p];
    problems[p].plane = {{plane, plane + n_features}, plane[n_features]};
  }
  common::Watch watch(make_hook(nb::none()), n_problems);
  {
    const nb::gil_scoped_release release;
    linear::run_perceptrons(rows, options, problems, n_threads, watch);
  }
  std::vector<double> last_planes, results;
  std::vector<std::int64_t> mistakes, passes;
  bool overflow = false;
  const auto append = [](const linear::Hyperplane& plane, std::vector<double>& out) {
    out.insert(out.end(), plane.coef.begin(), plane.coef.end());
    out.push_back(plane.intercept);
  };
  for (const auto& problem : problems) {
    append(problem.plane, last_planes);
    append(problem.result, results);
    mistakes.push_back(problem.n_mistakes);
    passes.push_back(problem.n_passes);
    overflow = overflow || problem.overflow;
  }
  return nb::make_tuple(to_numpy(std::move(last_planes)), to_numpy(std::move(results)),
                        to_numpy(std::move(mistakes)), to_numpy(std::move(passes)), overflow);
}

template <class Value>
void bind_run(nb::module_& m) {
  m.def(
      "run_perceptrons",
      [](const Array<Value>& values, const std::optional<Indices>& columns,
         const std::optional<Indices>& starts, std::size_t n_rows, std::size_t n_features,
         const Matrix<double>& steps, const Matrix<double>& planes,
         const Array<std::uint32_t>& seeds, const std::string& variant, bool fit_intercept,
         bool shuffle, int max_passes, int patience, double tolerance, int n_threads) {
        const linear::PerceptronOptions options{
            variant_named(variant), fit_intercept, shuffle, max_passes, patience, tolerance};
        return run<Value>(values, columns, starts, n_rows, n_features, steps, planes, seeds,
                          options, n_threads);
      },
      nb::arg("values"), nb::arg("columns").none(), nb::arg("starts").none(), nb::arg("n_rows"),
      nb::arg("n_features"), nb::arg("steps"), nb::arg("planes"), nb::arg("seeds"),
      nb::arg("variant"), nb::arg("fit_intercept"), nb::arg("shuffle"), nb::arg("max_passes"),
      nb::arg("patience"), nb::arg("tolerance"), nb::arg("n_threads"));
}

}  // namespace

void bind_perceptron(nb::module_& m) {
  bind_run<double>(m);
  bind_run<float>(m);
}

}  // namespace spinney::bindings
