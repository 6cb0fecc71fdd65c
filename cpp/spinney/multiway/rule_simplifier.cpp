#include "spinney/multiway/rule_simplifier.h"

#include <algorithm>
#include <bit>

#include "spinney/common/parallel.h"
#include "spinney/common/random.h"
#include "spinney/multiway/error_pruner.h"

namespace spinney::multiway {

using common::Code;
using common::parallel_for;
using common::worthwhile_threads;

namespace {

// A condition on codes.
struct CodeTest {
  const Code* codes;
  Code begin = 0;
  Code end = 0;
  const std::uint8_t* allowed = nullptr;

  bool holds(common::Row row) const {
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
  const auto code_above = [&](double value) {
    return static_cast<Code>(std::upper_bound(column.values.begin(), column.values.end(), value) -
                             column.values.begin());
  };
  test.begin = code_above(condition.low);
  test.end = code_above(condition.high);
  return test;
}

struct Cover {
  double weight = 0;
  double errors = 0;

  void add(double w, bool wrong) {
    weight += w;
    errors += wrong ? w : 0.0;
  }
  void add(const Cover& other) {
    weight += other.weight;
    errors += other.errors;
  }
  double expected(double confidence) const {
    if (weight <= 0) return 1;
    return (errors + extra_errors(weight, errors, confidence)) / weight;
  }
};

// Rows that fail the same conditions of a rule with up to 64 conditions.
struct Group {
  std::uint64_t failed = 0;
  Cover cover;
  bool used = false;
};

// Groups by failed conditions: a hash table that doubles when it is half full.
class Groups {
 public:
  Groups() : slots_(1024) {}

  void add(std::uint64_t failed, double weight, bool wrong) {
    Group& group = find(failed);
    if (!group.used) {
      group.used = true;
      group.failed = failed;
      if (2 * ++n_used_ > slots_.size()) {
        grow();
        find(failed).cover.add(weight, wrong);
        return;
      }
    }
    group.cover.add(weight, wrong);
  }

  template <class Body>
  void for_each(const Body& body) const {
    for (const Group& group : slots_) {
      if (group.used) body(group);
    }
  }

 private:
  Group& find(std::uint64_t failed) {
    const std::size_t last = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>(common::mix(failed)) & last;
    while (slots_[at].used && slots_[at].failed != failed) at = (at + 1) & last;
    return slots_[at];
  }
  void grow() {
    std::vector<Group> old(2 * slots_.size());
    std::swap(old, slots_);
    for (const Group& group : old) {
      if (group.used) find(group.failed) = group;
    }
  }

  std::vector<Group> slots_;
  std::size_t n_used_ = 0;
};

// Sets the bit of a condition in every row that fails it.
void mark_failures(const QuinlanRows& rows, const CodeTest& test, std::uint64_t bit,
                   std::vector<std::uint64_t>& failed) {
  for (std::size_t i = 0; i < rows.items.size(); ++i) {
    failed[i] |= test.holds(rows.items.rows[i]) ? 0 : bit;
  }
}

constexpr std::size_t max_conditions = 64;  // later conditions are always kept

void simplify(const QuinlanRows& rows, double confidence, SimpleRule& rule) {
  const std::size_t n = std::min(rule.conditions.size(), max_conditions);
  std::vector<std::uint64_t> failed(rows.items.size());
  constexpr std::uint64_t one = 1;
  std::vector<std::uint8_t> beyond(rows.items.size());  // fails one of the later conditions
  for (std::size_t c = 0; c < rule.conditions.size(); ++c) {
    const CodeTest test = make_test(rows, rule.conditions[c]);
    if (c < n) {
      mark_failures(rows, test, one << c, failed);
    } else {
      for (std::size_t i = 0; i < beyond.size(); ++i) {
        if (!test.holds(rows.items.rows[i])) beyond[i] = 1;
      }
    }
  }
  Groups groups;
  for (std::size_t i = 0; i < failed.size(); ++i) {
    if (beyond[i] != 0) continue;
    groups.add(failed[i], rows.items.weights[i], rows.labels[rows.items.rows[i]] != rule.label);
  }
  rule.kept.assign(rule.conditions.size(), 1);
  std::uint64_t kept = n == max_conditions ? ~std::uint64_t{0} : (one << n) - 1;
  while (true) {
    // The cover of the rule, and the rows that fail exactly one condition: dropping it adds them.
    Cover current;
    std::vector<Cover> more(n);
    groups.for_each([&](const Group& group) {
      const std::uint64_t left = group.failed & kept;
      if (left == 0) {
        current.add(group.cover);
      } else if (std::has_single_bit(left)) {
        more[static_cast<std::size_t>(std::countr_zero(left))].add(group.cover);
      }
    });
    rule.weight = current.weight;
    rule.errors = current.errors;
    double best = current.expected(confidence);
    std::size_t dropped = n;
    for (std::size_t c = 0; c < n; ++c) {
      if (rule.kept[c] == 0) continue;
      Cover without = current;
      without.add(more[c]);
      const double expected = without.expected(confidence);
      if (expected > best) continue;
      best = expected;
      dropped = c;
    }
    if (dropped == n) return;
    rule.kept[dropped] = 0;
    kept &= ~(one << dropped);
  }
}

}  // namespace

void simplify_rules(const QuinlanRows& rows, double confidence, int n_threads,
                    std::vector<SimpleRule>& rules) {
  const double work = 20.0 * static_cast<double>(rules.size() * rows.items.size());
  parallel_for(rules.size(), worthwhile_threads(work, n_threads),
               [&](std::size_t i, int) { simplify(rows, confidence, rules[i]); });
}

}  // namespace spinney::multiway
