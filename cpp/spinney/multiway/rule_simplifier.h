// Drops conditions of rules, as C4.5's rules do: one after another, as long as the share of
// mistakes to be expected does not rise.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/multiway/quinlan_rows.h"

namespace spinney::multiway {

struct RuleCondition {
  std::int32_t feature = 0;
  double low = 0;  // of a number: low < x <= high
  double high = 0;
  std::vector<std::uint8_t> allowed;  // of a category: whether each code will do
};

struct SimpleRule {
  std::vector<RuleCondition> conditions;
  std::uint32_t label = 0;
  std::vector<std::uint8_t> kept;  // of each condition
  double weight = 0;               // of the rows that the rule covers,
  double mistakes = 0;             // and of those of another class
};

// Sets what is kept of each rule. No condition holds for a missing value.
void simplify_rules(const QuinlanRows& rows, double confidence, int n_threads,
                    std::vector<SimpleRule>& rules);

}  // namespace spinney::multiway
