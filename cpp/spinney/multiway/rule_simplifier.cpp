#include "spinney/multiway/rule_simplifier.h"

#include <algorithm>

#include "spinney/common/parallel.h"
#include "spinney/multiway/error_pruner.h"

namespace spinney {
namespace {

// A condition on codes.
struct CodeTest {
  const Code* codes;
  Code begin = 0;
  Code end = 0;
  const std::uint8_t* allowed = nullptr;

  bool holds(Row row) const {
    const Code code = codes[row];
    return allowed == nullptr ? code >= begin && code < end : code < end && allowed[code] != 0;
  }
};

CodeTest make_test(const QuinlanRows& rows, const RuleCondition& condition) {
  const QuinlanColumn& column = rows.columns[static_cast<std::size_t>(condition.feature)];
  CodeTest test{column.codes.data()};
  if (column.categorical) {
    test.end = static_cast<Code>(condition.allowed.size());
    test.allowed = condition.allowed.data();
    return test;
  }
  const auto place = [&](double value) {
    return static_cast<Code>(std::upper_bound(column.values.begin(), column.values.end(), value) -
                             column.values.begin());
  };
  test.begin = place(condition.low);
  test.end = place(condition.high);
  return test;
}

struct Cover {
  double weight = 0;
  double mistakes = 0;

  void add(double w, bool wrong) {
    weight += w;
    mistakes += wrong ? w : 0.0;
  }
  double expected(double confidence) const {
    if (weight <= 0) return 1;
    return (mistakes + extra_errors(weight, mistakes, confidence)) / weight;
  }
};

void simplify(const QuinlanRows& rows, double confidence, SimpleRule& rule) {
  const std::size_t n = rule.conditions.size();
  std::vector<CodeTest> tests;
  for (const RuleCondition& condition : rule.conditions)
    tests.push_back(make_test(rows, condition));
  rule.kept.assign(n, 1);
  std::vector<std::size_t> left(n);  // conditions that are still there
  for (std::size_t c = 0; c < n; ++c) left[c] = c;
  while (true) {
    // What the rule covers, and what else without each of its conditions: rows that fail it alone.
    Cover whole;
    std::vector<Cover> more(left.size());
    for (std::size_t i = 0; i < rows.items.size(); ++i) {
      const Row row = rows.items.rows[i];
      std::size_t failed = left.size();
      bool twice = false;
      for (std::size_t c = 0; c < left.size(); ++c) {
        if (tests[left[c]].holds(row)) continue;
        twice = failed != left.size();
        if (twice) break;
        failed = c;
      }
      if (twice) continue;
      Cover& cover = failed == left.size() ? whole : more[failed];
      cover.add(rows.items.weights[i], rows.labels[row] != rule.label);
    }
    rule.weight = whole.weight;
    rule.mistakes = whole.mistakes;
    double best = whole.expected(confidence);
    std::size_t dropped = left.size();
    for (std::size_t c = 0; c < left.size(); ++c) {
      const Cover without{whole.weight + more[c].weight, whole.mistakes + more[c].mistakes};
      const double expected = without.expected(confidence);
      if (expected > best) continue;
      best = expected;
      dropped = c;
    }
    if (dropped == left.size()) return;
    rule.kept[left[dropped]] = 0;
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(dropped));
  }
}

}  // namespace

void simplify_rules(const QuinlanRows& rows, double confidence, int n_threads,
                    std::vector<SimpleRule>& rules) {
  const double work = 20.0 * static_cast<double>(rules.size() * rows.items.size());
  parallel_for(rules.size(), worthwhile_threads(work, n_threads),
               [&](std::size_t i, int) { simplify(rows, confidence, rules[i]); });
}

}  // namespace spinney
