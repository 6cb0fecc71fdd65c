#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "spinney/common/check.h"

namespace spinney::bindings {

void bind_common(nanobind::module_& m);
void bind_table(nanobind::module_& m);
void bind_tree(nanobind::module_& m);
void bind_forest(nanobind::module_& m);
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

// The error for a string parameter that has none of its allowed values.
inline common::InputError unknown_name(const char* parameter, const std::string& name,
                                       std::initializer_list<const char*> allowed) {
  std::string text = std::string(parameter) + " must be one of ";
  const char* separator = "";
  for (const char* const one : allowed) {
    text += std::string(separator) + "'" + one + "'";
    separator = ", ";
  }
  return common::InputError(text + "; got '" + name + "'");
}

}  // namespace spinney::bindings
