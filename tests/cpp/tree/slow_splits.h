// A brute-force reference for split searches: tries every split of a node and computes every
// number from the rows, by definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/criterion/criterion.h"
#include "spinney/forest/tree.h"
#include "spinney/table/table.h"

namespace slow {

using spinney::common::Row;
using spinney::criterion::CriterionKind;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Problem {
  std::size_t n = 0;
  std::vector<std::vector<double>> x;            // by column; categories as codes, NaN: missing
  std::vector<std::int32_t> n_categories;        // by column; 0: numeric
  std::vector<std::vector<std::int32_t>> codes;  // by column, if categorical
  CriterionKind kind = CriterionKind::gini;
  std::size_t n_outputs = 1;
  std::uint32_t n_classes = 2;
  std::vector<std::uint32_t> labels;  // [output * n + row]
  std::vector<double> y;              // [output * n + row]
  std::vector<double> weights;        // empty: 1
  bool integral_weights = false;

  double weight(Row row) const { return weights.empty() ? 1.0 : weights[row]; }

  spinney::table::Table table() const {
    spinney::table::Table out;
    out.n_rows = n;
    for (std::size_t f = 0; f < x.size(); ++f) {
      spinney::table::Column column;
      if (n_categories[f] > 0) {
        column.kind = spinney::table::ColumnKind::categorical;
        column.dtype = spinney::table::Dtype::int32;
        column.data = reinterpret_cast<const std::byte*>(codes[f].data());
        column.stride = sizeof(std::int32_t);
        column.n_categories = n_categories[f];
      } else {
        column.data = reinterpret_cast<const std::byte*>(x[f].data());
        column.stride = sizeof(double);
      }
      out.columns.push_back(column);
    }
    return out;
  }

  spinney::criterion::Targets targets() const {
    spinney::criterion::Targets out;
    out.n_rows = n;
    out.n_outputs = n_outputs;
    if (spinney::criterion::is_classification(kind)) {
      out.n_classes.assign(n_outputs, n_classes);
      out.labels = labels.data();
    } else {
      out.values = y.data();
    }
    out.weights = weights.empty() ? nullptr : weights.data();
    out.integral_weights = integral_weights;
    return out;
  }
};

enum class Weighting : std::uint8_t { none, integers, reals };

struct Shape {
  std::size_t n_rows = 40;
  std::size_t n_numeric = 3;
  std::size_t n_categorical = 2;
  std::uint64_t n_values = 8;  // distinct values of a numeric column
  bool missing = true;
};

inline Problem draw(const Shape& shape, CriterionKind kind, std::size_t n_outputs,
                    std::uint32_t n_classes, Weighting weighting, std::uint64_t seed) {
  spinney::common::Stream stream(seed, spinney::common::Purpose::rows, shape.n_rows);
  Problem p;
  p.n = shape.n_rows;
  p.kind = kind;
  p.n_outputs = n_outputs;
  p.n_classes = n_classes;
  for (std::size_t f = 0; f < shape.n_numeric + shape.n_categorical; ++f) {
    const bool categorical = f >= shape.n_numeric;
    const std::uint64_t n_values = categorical ? 4 : shape.n_values;
    p.n_categories.push_back(categorical ? 4 : 0);
    p.x.emplace_back();
    p.codes.emplace_back();
    for (std::size_t i = 0; i < p.n; ++i) {
      const bool missing = shape.missing && f % 2 == 0 && stream.below(5) == 0;
      const auto value = static_cast<double>(stream.below(n_values));
      p.x.back().push_back(missing ? nan : value);
      p.codes.back().push_back(missing ? -1 : static_cast<std::int32_t>(value));
    }
  }
  for (std::size_t i = 0; i < p.n * n_outputs; ++i) {
    p.labels.push_back(static_cast<std::uint32_t>(stream.below(n_classes)));
    p.y.push_back(static_cast<double>(stream.below(7)) +
                  (kind == CriterionKind::poisson ? 0.5 : 0));
  }
  for (std::size_t i = 0; i < p.n && weighting != Weighting::none; ++i) {
    p.weights.push_back(weighting == Weighting::integers ? static_cast<double>(stream.below(4))
                                                         : 0.1 + stream.uniform());
  }
  p.integral_weights = weighting == Weighting::integers;
  return p;
}

inline std::vector<Row> rows_with_weight(const Problem& p) {
  std::vector<Row> rows;
  for (std::size_t row = 0; row < p.n; ++row) {
    if (p.weight(static_cast<Row>(row)) != 0) rows.push_back(static_cast<Row>(row));
  }
  return rows;
}

inline double total_weight(const Problem& p, const std::vector<Row>& rows) {
  double sum = 0;
  for (const Row row : rows) sum += p.weight(row);
  return sum;
}

// The median of weighted targets; the midpoint of the two middle targets if both are medians.
inline double median(const Problem& p, const std::vector<Row>& rows, std::size_t output) {
  std::vector<std::pair<double, double>> sorted;
  for (const Row row : rows) sorted.emplace_back(p.y[output * p.n + row], p.weight(row));
  std::sort(sorted.begin(), sorted.end());
  const double total = total_weight(p, rows);
  double below = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    below += sorted[i].second;
    if (std::abs(below - total / 2) < 1e-12 * total && i + 1 < sorted.size()) {
      return (sorted[i].first + sorted[i + 1].first) / 2;
    }
    if (below > total / 2) return sorted[i].first;
  }
  return sorted.back().first;
}

inline double mean(const Problem& p, const std::vector<Row>& rows, std::size_t output) {
  double sum = 0;
  for (const Row row : rows) sum += p.weight(row) * p.y[output * p.n + row];
  return sum / total_weight(p, rows);
}

inline double class_fraction(const Problem& p, const std::vector<Row>& rows, std::size_t output,
                             std::uint32_t k) {
  double sum = 0;
  for (const Row row : rows) sum += p.labels[output * p.n + row] == k ? p.weight(row) : 0.0;
  return sum / total_weight(p, rows);
}

inline double impurity(const Problem& p, const std::vector<Row>& rows) {
  const double total = total_weight(p, rows);
  double sum = 0;
  for (std::size_t o = 0; o < p.n_outputs; ++o) {
    if (spinney::criterion::is_classification(p.kind)) {
      double squares = 0;
      double entropy = 0;
      double largest = 0;
      for (std::uint32_t k = 0; k < p.n_classes; ++k) {
        const double fraction = class_fraction(p, rows, o, k);
        squares += fraction * fraction;
        if (fraction > 0) entropy -= fraction * std::log2(fraction);
        largest = std::max(largest, fraction);
      }
      if (p.kind == CriterionKind::gini) sum += 1 - squares;
      if (p.kind == CriterionKind::entropy) sum += entropy;
      if (p.kind == CriterionKind::misclassification) sum += 1 - largest;
      continue;
    }
    const double centre =
        p.kind == CriterionKind::absolute_error ? median(p, rows, o) : mean(p, rows, o);
    for (const Row row : rows) {
      const double y = p.y[o * p.n + row];
      double term = 0;
      if (p.kind == CriterionKind::squared_error) term = (y - centre) * (y - centre);
      if (p.kind == CriterionKind::absolute_error) term = std::abs(y - centre);
      if (p.kind == CriterionKind::poisson) term = y > 0 ? y * std::log(y / centre) : 0.0;
      sum += p.weight(row) * term / total;
    }
  }
  return sum / static_cast<double>(p.n_outputs);
}

// The number that monotonic constraints bound.
inline double bounded_value(const Problem& p, const std::vector<Row>& rows) {
  if (spinney::criterion::is_classification(p.kind)) return class_fraction(p, rows, 0, 0);
  return p.kind == CriterionKind::absolute_error ? median(p, rows, 0) : mean(p, rows, 0);
}

struct Limits {
  std::size_t min_samples_leaf = 1;
  double min_weight_leaf = 0;
  std::vector<int> monotonic;  // by column, or empty
};

struct Sides {
  std::vector<Row> left;
  std::vector<Row> right;
};

inline bool is_allowed(const Problem& p, const Sides& sides, std::size_t column,
                       const Limits& limits) {
  for (const std::vector<Row>* side : {&sides.left, &sides.right}) {
    if (side->size() < std::max<std::size_t>(limits.min_samples_leaf, 1)) return false;
    if (total_weight(p, *side) < limits.min_weight_leaf) return false;
    if (p.kind != CriterionKind::poisson) continue;
    for (std::size_t o = 0; o < p.n_outputs; ++o) {
      if (mean(p, *side, o) <= 0) return false;
    }
  }
  const int sign = limits.monotonic.empty() ? 0 : limits.monotonic[column];
  return sign == 0 || (bounded_value(p, sides.left) - bounded_value(p, sides.right)) * sign <= 0;
}

inline double decrease(const Problem& p, const std::vector<Row>& rows, const Sides& sides) {
  const double total = total_weight(p, rows);
  return impurity(p, rows) - total_weight(p, sides.left) / total * impurity(p, sides.left) -
         total_weight(p, sides.right) / total * impurity(p, sides.right);
}

// Calls visit(sides) for every split of the rows by the column: all thresholds with missing values
// on either side, or all subsets of categories (missing is one of them).
template <class Visit>
void for_each_split(const Problem& p, const std::vector<Row>& rows, std::size_t column,
                    const Visit& visit) {
  const std::vector<double>& x = p.x[column];
  std::vector<double> values;
  bool any_missing = false;
  for (const Row row : rows) {
    any_missing |= std::isnan(x[row]);
    if (!std::isnan(x[row])) values.push_back(x[row]);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  const auto partition = [&](const auto& goes_left) {
    Sides sides;
    for (const Row row : rows) (goes_left(x[row]) ? sides.left : sides.right).push_back(row);
    if (!sides.left.empty() && !sides.right.empty()) visit(sides);
  };
  if (p.n_categories[column] == 0) {
    for (const double cut : values) {
      for (const bool missing_left : {false, true}) {
        if (missing_left && !any_missing) continue;
        partition([&](double value) { return std::isnan(value) ? missing_left : value <= cut; });
      }
    }
    return;
  }
  if (any_missing) values.push_back(nan);
  for (std::uint32_t subset = 1; subset + 1 < std::uint32_t{1} << values.size(); ++subset) {
    partition([&](double value) {
      for (std::size_t k = 0; k < values.size(); ++k) {
        if (value == values[k] || (std::isnan(value) && std::isnan(values[k]))) {
          return ((subset >> k) & 1) != 0;
        }
      }
      return false;
    });
  }
}

// The largest decrease over all allowed splits of the columns; −1 if there is none.
inline double best_decrease(const Problem& p, const std::vector<Row>& rows, const Limits& limits,
                            bool with_categories = true) {
  double best = -1;
  for (std::size_t f = 0; f < p.x.size(); ++f) {
    if (p.n_categories[f] > 0 && !with_categories) continue;
    for_each_split(p, rows, f, [&](const Sides& sides) {
      if (is_allowed(p, sides, f, limits)) best = std::max(best, decrease(p, rows, sides));
    });
  }
  return best;
}

inline Sides partition(const Problem& p, const spinney::forest::Tree& tree, std::size_t node,
                       const std::vector<Row>& rows) {
  Sides sides;
  const auto f = static_cast<std::size_t>(tree.feature[node]);
  for (const Row row : rows) {
    const double value = p.x[f][row];
    bool left = tree.missing_left[node] != 0;
    if (!std::isnan(value) && p.n_categories[f] == 0) left = value <= tree.threshold[node];
    if (!std::isnan(value) && p.n_categories[f] > 0) {
      const auto code = static_cast<std::size_t>(value);
      const auto start = static_cast<std::size_t>(tree.category_start[node]);
      left = ((tree.category_bits[start + code / 32] >> (code % 32)) & 1) != 0;
    }
    (left ? sides.left : sides.right).push_back(row);
  }
  return sides;
}

}  // namespace slow
