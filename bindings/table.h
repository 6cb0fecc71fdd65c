#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "spinney/table/table.h"

// A table for the core, with references to the arrays whose memory it reads.
struct BoundTable {
  spinney::Table table;
  std::vector<nanobind::object> owners;
};
