// Errors that cross the binding. Estimators validate their input; the core checks only what could
// make it read or write out of bounds.
#pragma once

#include <stdexcept>
#include <string>

namespace spinney::common {

// Becomes Python's ValueError.
struct InputError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

template <class T>
void require_at_least(const char* name, T value, T minimum) {
  if (value >= minimum) return;
  throw InputError(std::string(name) + " must be at least " + std::to_string(minimum) + "; got " +
                   std::to_string(value));
}

// The user stopped the computation (Ctrl-C, or a callback raised an exception). The binding holds
// the Python exception; this one only unwinds the core.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace spinney::common
