#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

void bind_common(nanobind::module_& m);
void bind_table(nanobind::module_& m);
void bind_tree(nanobind::module_& m);
void bind_ensemble(nanobind::module_& m);
void bind_adaboost(nanobind::module_& m);
void bind_boosting(nanobind::module_& m);
void bind_multiway(nanobind::module_& m);
void bind_neighbors(nanobind::module_& m);
void bind_distance(nanobind::module_& m);
void bind_gower(nanobind::module_& m);
void bind_local(nanobind::module_& m);
void bind_hnsw(nanobind::module_& m);
void bind_linear(nanobind::module_& m);
void bind_perceptron(nanobind::module_& m);
void bind_mixture(nanobind::module_& m);
void bind_explain(nanobind::module_& m);
void bind_dependence(nanobind::module_& m);

// A vector becomes a NumPy array without a copy: the array owns it from then on.
template <class T>
nanobind::object to_numpy(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nanobind::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nanobind::cast(nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(
      owned->data(), {owned->size()}, owner));
}
