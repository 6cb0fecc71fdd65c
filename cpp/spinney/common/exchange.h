// Sums over several workers that each have some of the rows. All workers run the same loop and call
// the same exchanges in the same order; each then goes on with the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney::common {

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Each number becomes its sum over the workers: integers, so that no order of workers matters.
  virtual void add(std::int64_t* values, std::size_t n) = 0;
  // … its maximum over the workers; none is NaN.
  virtual void max(double* values, std::size_t n) = 0;
};

// Null: one worker has all rows.
inline void add_up(Exchange* exchange, std::int64_t* values, std::size_t n) {
  if (exchange != nullptr) exchange->add(values, n);
}

inline void find_max(Exchange* exchange, double* values, std::size_t n) {
  if (exchange != nullptr) exchange->max(values, n);
}

}  // namespace spinney::common
