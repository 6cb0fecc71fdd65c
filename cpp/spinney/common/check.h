// Errors that cross the binding. Input is validated once, by the estimator; the core refuses only
// what would make it read where it must not.
#pragma once

#include <stdexcept>
#include <string>

namespace spinney::common {

// Becomes Python's ValueError.
struct InputError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// The user asked to stop (Ctrl-C, or a callback raised). The binding already holds the Python
// exception; this only unwinds the core.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace spinney::common
