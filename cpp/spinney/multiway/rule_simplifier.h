// Simplifies rules as C4.5rules: drops one condition after another while the expected error rate
// does not increase.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/multiway/quinlan_rows.h"

namespace spinney::multiway {

struct RuleCondition {
  std::int32_t feature = 0;
  double low = 0;  // numeric: low < x <= high
  double high = 0;
  std::vector<std::uint8_t> allowed;  // categorical: by code, whether the condition holds
};

struct SimpleRule {
  std::vector<RuleCondition> conditions;
  std::uint32_t label = 0;
  std::vector<std::uint8_t> kept;  // by condition
  double weight = 0;               // of the covered rows
  double errors = 0;               // weight of the covered rows of other classes
};

// Sets kept, weight and errors of each rule. No condition holds for a missing value.
void simplify_rules(const QuinlanRows& rows, double confidence, int n_threads,
                    std::vector<SimpleRule>& rules);

}  // namespace spinney::multiway
