#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "spinney/table/table.h"

namespace spinney::bindings {

// A table for the core, with references to the arrays whose memory it reads.
struct BoundTable {
  table::Table table;
  std::vector<nanobind::object> owners;
};

}  // namespace spinney::bindings
