#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/mixture/passes.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

using Floats = Array<double>;

template <class T>
using AnyMatrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

mixture::CovarianceType covariance_type_named(const std::string& name) {
  if (name == "full") return mixture::CovarianceType::full;
  if (name == "tied") return mixture::CovarianceType::tied;
  if (name == "diag") return mixture::CovarianceType::diag;
  throw unknown_name("covariance_type", name, {"full", "tied", "diag"});
}

// A model, with references to the arrays whose memory it reads.
struct BoundMixture {
  Floats offsets;
  Matrix<double> means;
  Floats factors, shift;
  mixture::Model model;

  BoundMixture(const std::string& covariance_type, Floats offsets_, Matrix<double> means_,
               Floats factors_, Floats shift_)
      : offsets(std::move(offsets_)),
        means(std::move(means_)),
        factors(std::move(factors_)),
        shift(std::move(shift_)) {
    const std::size_t k = means.shape(0), d = means.shape(1);
    model.covariance_type = covariance_type_named(covariance_type);
    const std::size_t n_factors = model.covariance_type == mixture::CovarianceType::full ? k * d * d
                                  : model.covariance_type == mixture::CovarianceType::tied ? d * d
                                                                                           : k * d;
    // A model without factors has only means, which suffice for given responsibilities.
    if (offsets.shape(0) != k || shift.shape(0) != d ||
        (factors.shape(0) != 0 && factors.shape(0) != n_factors)) {
      throw common::InputError("mixture: arrays of the model have inconsistent shapes");
    }
    model.n_components = k;
    model.offsets = offsets.data();
    model.means = means.data();
    model.factors = factors.data();
  }

  bool has_densities() const { return factors.shape(0) != 0; }

  template <class T>
  mixture::Rows<T> rows(const AnyMatrix<T>& x, const std::optional<Floats>& weights) const {
    if (x.shape(1) != means.shape(1) || (weights && weights->shape(0) != x.shape(0))) {
      throw common::InputError("mixture: X, weights and model have inconsistent shapes");
    }
    return {x.data(),
            x.shape(0),
            x.shape(1),
            x.stride(0),
            x.stride(1),
            shift.data(),
            weights ? weights->data() : nullptr};
  }
};

template <class T>
nb::tuple sum_moments(const BoundMixture& self, const AnyMatrix<T>& x,
                      const std::optional<Floats>& weights,
                      const std::optional<Array<std::int32_t>>& labels,
                      const std::optional<Matrix<double>>& responsibilities, int n_threads) {
  const auto rows = self.rows(x, weights);
  mixture::KnownResponsibilities known;
  if (labels) {
    if (labels->shape(0) != rows.n_rows) {
      throw common::InputError("mixture: labels must have one value per row");
    }
    const auto k = static_cast<std::int64_t>(self.model.n_components);
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
      if (labels->data()[i] >= k) {
        throw common::InputError("mixture: a label is out of range");
      }
    }
    known.labels = labels->data();
  } else if (responsibilities) {
    if (responsibilities->shape(0) != rows.n_rows ||
        responsibilities->shape(1) != self.model.n_components) {
      throw common::InputError("mixture: responsibilities must have shape (n_rows, n_components)");
    }
    known.responsibilities = responsibilities->data();
  } else if (!self.has_densities()) {
    throw common::InputError(
        "mixture: a model without factors requires labels or responsibilities");
  }
  common::Watch watch(make_hook(nb::none()), rows.n_rows);
  mixture::Moments moments;
  {
    const nb::gil_scoped_release release;
    moments = mixture::sum_moments(rows, self.model, known, n_threads, watch);
  }
  return nb::make_tuple(moments.log_likelihood, to_numpy(std::move(moments.counts)),
                        to_numpy(std::move(moments.sums)), to_numpy(std::move(moments.products)),
                        to_numpy(std::move(moments.overlaps)));
}

template <class T>
void score(const BoundMixture& self, const AnyMatrix<T>& x,
           std::optional<OutArray<double>> densities,
           std::optional<OutArray<double>> responsibilities,
           std::optional<OutArray<std::int64_t>> labels, int n_threads) {
  const auto rows = self.rows(x, std::nullopt);
  const std::size_t n = rows.n_rows;
  if (!self.has_densities() || (densities && densities->size() != n) ||
      (responsibilities && responsibilities->size() != n * self.model.n_components) ||
      (labels && labels->size() != n)) {
    throw common::InputError("mixture: an output array has the wrong size");
  }
  const mixture::Scores out{densities ? densities->data() : nullptr,
                            responsibilities ? responsibilities->data() : nullptr,
                            labels ? labels->data() : nullptr};
  common::Watch watch(make_hook(nb::none()), n);
  const nb::gil_scoped_release release;
  mixture::score_rows(rows, self.model, out, n_threads, watch);
}

template <class T>
void bind_rows_of(nb::class_<BoundMixture>& type) {
  type.def("sum_moments", &sum_moments<T>, nb::arg("X").noconvert(), nb::arg("weights").none(),
           nb::arg("labels").none(), nb::arg("responsibilities").none(), nb::arg("n_threads"))
      .def("score", &score<T>, nb::arg("X").noconvert(), nb::arg("densities").none(),
           nb::arg("responsibilities").none(), nb::arg("labels").none(), nb::arg("n_threads"));
}

}  // namespace

void bind_mixture(nb::module_& m) {
  nb::class_<BoundMixture> type(m, "Mixture");
  type.def(nb::init<std::string, Floats, Matrix<double>, Floats, Floats>(),
           nb::arg("covariance_type"), nb::arg("offsets"), nb::arg("means"), nb::arg("factors"),
           nb::arg("shift"));
  bind_rows_of<double>(type);
  bind_rows_of<float>(type);
}

}  // namespace spinney::bindings
