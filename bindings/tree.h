// Shared by the bindings of trees and forests.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <string>

#include "bindings.h"
#include "spinney/common/watch.h"
#include "spinney/criterion/criterion.h"
#include "spinney/forest/tree.h"

namespace spinney::bindings {

template <class T>
using Array =
    nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <class T>
using OutArray = nanobind::ndarray<T, nanobind::c_contig, nanobind::device::cpu>;

template <class T>
using Matrix =
    nanobind::ndarray<const T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

// Targets, with references to the arrays whose memory they read.
struct BoundTargets {
  criterion::Targets targets;
  std::vector<nanobind::object> owners;
};

template <class T>
std::span<const T> view(const Array<T>& array) {
  return {array.data(), array.shape(0)};
}

criterion::CriterionKind criterion_named(const std::string& name);

// Polls for Ctrl-C and reports progress; runs on the calling thread with the GIL released.
common::Watch::Hook make_hook(nanobind::handle progress);

// A tree as NumPy arrays under scikit-learn's names.
nanobind::dict tree_arrays(forest::Tree&& tree);

}  // namespace spinney::bindings
