#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/neighbors/local_fit.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

neighbors::SmoothingKernel kernel_named(const std::string& name) {
  if (name == "uniform") return neighbors::SmoothingKernel::uniform;
  if (name == "triangular") return neighbors::SmoothingKernel::triangular;
  if (name == "epanechnikov") return neighbors::SmoothingKernel::epanechnikov;
  if (name == "biweight") return neighbors::SmoothingKernel::biweight;
  if (name == "triweight") return neighbors::SmoothingKernel::triweight;
  if (name == "tricube") return neighbors::SmoothingKernel::tricube;
  if (name == "gaussian") return neighbors::SmoothingKernel::gaussian;
  if (name == "cosine") return neighbors::SmoothingKernel::cosine;
  if (name == "logistic") return neighbors::SmoothingKernel::logistic;
  throw unknown_name("kernel", name,
                     {"uniform", "triangular", "epanechnikov", "biweight", "triweight", "tricube",
                      "gaussian", "cosine", "logistic"});
}

// A model, with references to the arrays whose memory it reads.
struct BoundLocalModel {
  Matrix<double> x, y;
  Array<double> weights;
  neighbors::LocalModel model;

  BoundLocalModel(Matrix<double> x_, Matrix<double> y_, Array<double> weights_,
                  const std::string& kernel, int degree, double alpha, bool logit)
      : x(std::move(x_)), y(std::move(y_)), weights(std::move(weights_)) {
    if (y.shape(0) != x.shape(0) || weights.shape(0) != x.shape(0)) {
      throw common::InputError("local: X, y and weights must have equally many rows");
    }
    model = {x.data(),   y.data(),   weights.data(),       x.shape(0),
             x.shape(1), y.shape(1), kernel_named(kernel), degree,
             alpha,      logit};
  }
};

using Floats = Array<double>;
using Indices = Array<std::int64_t>;

}  // namespace

void bind_local(nb::module_& m) {
  nb::class_<BoundLocalModel>(m, "LocalModel")
      .def(nb::init<Matrix<double>, Matrix<double>, Floats, std::string, int, double, bool>(),
           nb::arg("X"), nb::arg("y"), nb::arg("weights"), nb::arg("kernel"), nb::arg("degree"),
           nb::arg("alpha"), nb::arg("logit"))
      // Returns (values, noise, leverages, gradients), flat. Results that were not requested are
      // empty.
      .def(
          "fit",
          [](const BoundLocalModel& self, const Matrix<double>& queries, const Indices& starts,
             const Indices& rows, const Floats& distances, const Floats& bandwidths,
             const std::optional<Floats>& kernel_values, const std::optional<Indices>& own_rows,
             bool leave_out, bool with_gradients, int n_threads) {
            const std::size_t n = queries.shape(0), n_entries = rows.shape(0);
            if (queries.shape(1) != self.model.n_features || starts.shape(0) != n + 1 ||
                bandwidths.shape(0) != n || (own_rows && own_rows->shape(0) != n) ||
                distances.shape(0) != n_entries ||
                (kernel_values && kernel_values->shape(0) != n_entries)) {
              throw common::InputError(
                  "local: arrays of the neighborhoods have inconsistent shapes");
            }
            const neighbors::Neighborhoods near{queries.data(),
                                                n,
                                                starts.data(),
                                                rows.data(),
                                                n_entries,
                                                distances.data(),
                                                bandwidths.data(),
                                                kernel_values ? kernel_values->data() : nullptr,
                                                own_rows ? own_rows->data() : nullptr,
                                                leave_out};
            neighbors::LocalFits fits;
            {
              const nb::gil_scoped_release release;
              fits = neighbors::fit_local(self.model, near, with_gradients, n_threads);
            }
            return nb::make_tuple(to_numpy(std::move(fits.values)), to_numpy(std::move(fits.noise)),
                                  to_numpy(std::move(fits.leverages)),
                                  to_numpy(std::move(fits.gradients)));
          },
          nb::arg("queries"), nb::arg("starts"), nb::arg("rows"), nb::arg("distances"),
          nb::arg("bandwidths"), nb::arg("kernel_values").none(), nb::arg("own_rows").none(),
          nb::arg("leave_out"), nb::arg("with_gradients"), nb::arg("n_threads"));
}

}  // namespace spinney::bindings
