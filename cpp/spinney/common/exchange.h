// All-reduces over workers that each have some of the rows. All workers run the same loop and call
// the same functions in the same order, so all of them continue with the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney::common {

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Replaces each number by its sum over the workers. Integers: the order of workers has no effect.
  virtual void add(std::int64_t* values, std::size_t n) = 0;
  // Replaces each number by its maximum over the workers; none is NaN.
  virtual void max(double* values, std::size_t n) = 0;
};

// A null exchange means that one worker has all rows.
inline void add_up(Exchange* exchange, std::int64_t* values, std::size_t n) {
  if (exchange != nullptr) exchange->add(values, n);
}

inline void find_max(Exchange* exchange, double* values, std::size_t n) {
  if (exchange != nullptr) exchange->max(values, n);
}

}  // namespace spinney::common
