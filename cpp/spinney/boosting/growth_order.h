// Chooses the order of the leaves by name of the growth rule.
#pragma once

#include <stdexcept>

#include "spinney/boosting/best_first.h"
#include "spinney/boosting/boost_options.h"
#include "spinney/boosting/level_wise.h"

namespace spinney::boosting {

// Calls body(order) with the order of the rule.
template <class Body>
void with_growth_order(Growth growth, const Body& body) {
  switch (growth) {
    case Growth::best_first:
      return body(BestFirst{});
    case Growth::level_wise:
      return body(LevelWise{});
    case Growth::oblivious:
      break;
  }
  throw std::logic_error("growth: oblivious trees do not split one leaf after another");
}

}  // namespace spinney::boosting
