// The scans of one column, shared by all additive criteria.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <numeric>

#include "spinney/common/dispatch.h"
#include "spinney/criterion/criterion.h"
#include "spinney/criterion/principal.h"

namespace spinney::criterion {

// The sums left and right of a boundary that moves through a column.
template <class S>
concept Scanner = requires(S scanner, const S& state, table::Entry entry, const double* stat,
                           double* sums, common::Row n, std::size_t direction) {
  { S::has_tie } -> std::convertible_to<bool>;
  // The score takes only a few multiplications, and has_tie is false.
  { S::has_cheap_score } -> std::convertible_to<bool>;
  scanner.reset(stat);                            // all rows right; stat: the node's
  scanner.move(entry);                            // one row from right to left
  scanner.move_block(stat);                       // a set of rows from right to left
  scanner.move_back(stat);                        // a set of rows from left to right
  state.add(sums, entry);                         // adds a row to a stat
  { state.score(n, n) } -> std::same_as<double>;  // arguments: number of rows left and right
  { state.tie(n, n) } -> std::same_as<double>;    // orders equal scores
  { state.left_weight(n) } -> std::same_as<double>;
  { state.right_weight(n) } -> std::same_as<double>;
  { state.left_value(n) } -> std::same_as<double>;
  { state.right_value(n) } -> std::same_as<double>;
  // Whether the order of categories by order_key contains the best subset as a prefix.
  { state.one_dimensional() } -> std::same_as<bool>;
  { state.n_directions() } -> std::same_as<std::size_t>;
  { state.order_key(stat, direction) } -> std::same_as<double>;
  { state.stat_size() } -> std::same_as<std::size_t>;
  { state.layout() } -> std::same_as<const table::EntryLayout&>;
};

// Enumerating all subsets of m categories costs 2^(m-1) scores; this limit keeps it cheap.
constexpr std::size_t max_enumerated = 10;

// Whether both sides keep the limits and monotonic constraints of the request.
template <Scanner S>
SPINNEY_INLINE bool is_allowed(const S& scanner, const ScanRequest& request, common::Row n_left,
                               common::Row n_right) {
  const double min_weight = request.limits.min_weight_leaf;
  // Each side must weigh more than the rounding error of the total.
  const double least = 1e-15 * request.node.stat[0];
  const double left_weight = scanner.left_weight(n_left);
  const double right_weight = scanner.right_weight(n_right);
  if (!(left_weight > least && right_weight > least)) return false;
  if (left_weight < min_weight || right_weight < min_weight) return false;
  if (request.monotonic == 0) return true;
  const double left = scanner.left_value(n_left);
  const double right = scanner.right_value(n_right);
  return left >= request.node.lower && right >= request.node.lower && left <= request.node.upper &&
         right <= request.node.upper && (left - right) * request.monotonic <= 0;
}

// Whether the current split beats `best`; if so, stores its score there.
template <Scanner S>
SPINNEY_INLINE bool improves(const S& scanner, const ScanRequest& request, common::Row n_left,
                             common::Row n_right, Split& best) {
  const double score = scanner.score(n_left, n_right);
  if constexpr (S::has_tie) {
    if (!(score >= best.score)) return false;
    const double tie = scanner.tie(n_left, n_right);
    if (score == best.score && !(tie > best.tie)) return false;
    if (!is_allowed(scanner, request, n_left, n_right)) return false;
    best.tie = tie;
  } else {
    if (!(score > best.score)) [[likely]] {
      return false;
    }
    if (!is_allowed(scanner, request, n_left, n_right)) return false;
  }
  best.score = score;
  return true;
}

// The hot loop: every row has an entry and no value is missing. With ties, whether two neighbours
// differ is unpredictable; whether a score beats the best is predictable, because it is rare. A
// cheap score is therefore computed and compared first.
template <Scanner S>
SPINNEY_INLINE void scan_dense(S& scanner, const ScanRequest& request, Split& best) {
  const table::Entry* const entries = request.entries;
  const common::Row n = request.n_entries;
  const common::Row margin = std::max<common::Row>(request.limits.min_samples_leaf, 1);
  if (n / 2 < margin) return;
  const int code_shift = scanner.layout().code_shift();
  scanner.reset(request.node.stat);
  common::Row i = 0;
  for (; i + 1 < margin; ++i) scanner.move(entries[i]);
  const common::Row last = n - margin;
  common::Row found = n;
  double best_score = best.score;
  table::Entry current = entries[i];
  for (; i < last; ++i) {
    const table::Entry next = entries[i + 1];
    scanner.move(current);
    const bool differs = ((current ^ next) >> code_shift) != 0;
    current = next;
    if constexpr (S::has_cheap_score) {
      const double score = scanner.score(i + 1, n - i - 1);
      if (score > best_score) [[unlikely]] {
        if (!differs || !is_allowed(scanner, request, i + 1, n - i - 1)) continue;
        best_score = score;
        found = i;
      }
    } else {
      if (differs && improves(scanner, request, i + 1, n - i - 1, best)) found = i;
    }
  }
  if (found == n) return;
  if constexpr (S::has_cheap_score) best.score = best_score;
  const table::EntryLayout& layout = scanner.layout();
  best.feature = request.feature;
  best.categorical = false;
  best.only_missing_right = false;
  best.n_left = found + 1;
  best.missing_left = best.n_left > n - best.n_left;
  best.left_code = layout.code(entries[found]);
  best.below = layout.row(entries[found]);
  best.above = layout.row(entries[found + 1]);
}

// scan_dense as a kernel. A local copy of the scanner stays in registers.
template <Scanner S>
SPINNEY_INLINE void scan_dense_kernel(const S& scanner, const ScanRequest& request, Split& best) {
  S local = scanner;
  scan_dense(local, request, best);
}

// The stat of the rows without an entry = the node's minus that of the entries.
template <Scanner S>
void implicit_stat(const S& scanner, const ScanRequest& request, double* stat) {
  const std::size_t size = scanner.stat_size();
  std::fill(stat, stat + size, 0.0);
  for (common::Row i = 0; i < request.n_entries; ++i) scanner.add(stat, request.entries[i]);
  for (std::size_t k = 0; k < size; ++k) stat[k] = request.node.stat[k] - stat[k];
}

// Numeric columns with missing or implicit values. Tries missing values right, then left.
template <Scanner S>
void scan_numeric(S& scanner, const ScanRequest& request, ScanScratch& scratch, Split& best) {
  const table::CodedColumn& column = *request.column;
  const table::EntryLayout layout = scanner.layout();
  const table::Entry* const entries = request.entries;
  const common::Row n = request.node.n_rows;
  const common::Row margin = std::max<common::Row>(request.limits.min_samples_leaf, 1);
  const common::Row n_implicit = request.n_implicit();
  const auto position = [&](common::Code code) {
    return static_cast<common::Row>(
        std::partition_point(entries, entries + request.n_entries,
                             [&](table::Entry entry) { return layout.code(entry) < code; }) -
        entries);
  };
  const common::Row end_listed =
      position(column.missing_code);  // entries that are not missing: [0, end_listed)
  const bool implicit_missing = n_implicit > 0 && column.is_missing(column.implicit_code);
  const common::Row n_missing = implicit_missing ? n_implicit : request.n_entries - end_listed;
  const bool has_block = n_implicit > 0 && !implicit_missing;
  const common::Row block_at = has_block ? position(column.implicit_code) : end_listed;
  if (n_implicit > 0) {
    scratch.group_stats.resize(scanner.stat_size());
    implicit_stat(scanner, request, scratch.group_stats.data());
  }
  const double* const block = scratch.group_stats.data();

  for (int missing_left = 0; missing_left <= (n_missing > 0 ? 1 : 0); ++missing_left) {
    scanner.reset(request.node.stat);
    common::Row n_left = 0;
    if (missing_left != 0) {
      if (implicit_missing) {
        scanner.move_block(block);
      } else {
        for (common::Row i = end_listed; i < request.n_entries; ++i) scanner.move(entries[i]);
      }
      n_left = n_missing;
    }
    bool has_below = false;
    common::Code code_below = 0;
    common::Row below = 0;
    const auto boundary = [&](common::Row above, bool above_is_missing) {
      if (n_left < margin || n - n_left < margin) return;
      if (!improves(scanner, request, n_left, n - n_left, best)) return;
      best.feature = request.feature;
      best.categorical = false;
      best.only_missing_right = above_is_missing;
      best.n_left = n_left;
      best.missing_left = n_missing > 0 ? missing_left != 0 : n_left > n - n_left;
      best.left_code = code_below;
      best.below = below;
      best.above = above;
    };
    const auto feed = [&](common::Row from, common::Row to) {
      for (common::Row i = from; i < to; ++i) {
        const table::Entry entry = entries[i];
        const common::Code code = layout.code(entry);
        if (has_below && code != code_below) boundary(layout.row(entry), false);
        scanner.move(entry);
        ++n_left;
        has_below = true;
        code_below = code;
        below = layout.row(entry);
      }
    };
    feed(0, block_at);
    if (has_block) {
      if (has_below) boundary(implicit_row, false);
      scanner.move_block(block);
      n_left += n_implicit;
      has_below = true;
      code_below = column.implicit_code;
      below = implicit_row;
    }
    feed(block_at, end_listed);
    if (n_missing > 0 && missing_left == 0 && has_below) boundary(0, true);
  }
}

// A range of a numeric column's values; all rows with smaller values are left.
template <Scanner S>
void scan_range(S& scanner, const ScanRequest& request, Split& best) {
  const table::EntryLayout layout = scanner.layout();
  const table::Entry* const entries = request.entries;
  const common::Row n = request.node.n_rows;
  const common::Row margin = std::max<common::Row>(request.limits.min_samples_leaf, 1);
  scanner.reset(request.node.stat);
  scanner.move_block(request.before);
  for (common::Row i = 0; i + 1 < request.n_entries; ++i) {
    scanner.move(entries[i]);
    if (layout.code(entries[i]) == layout.code(entries[i + 1])) continue;
    const common::Row n_left = request.n_before + i + 1;
    if (n_left < margin || n - n_left < margin) continue;
    if (!improves(scanner, request, n_left, n - n_left, best)) continue;
    best.feature = request.feature;
    best.categorical = false;
    best.only_missing_right = false;
    best.n_left = n_left;
    best.missing_left = n_left > n - n_left;
    best.left_code = layout.code(entries[i]);
    best.below = layout.row(entries[i]);
    best.above = layout.row(entries[i + 1]);
  }
}

// Categories: all rows of a category go to the same side. One output and a concave impurity: sorted
// by mean (or by the fraction of the second class), the best prefix is the best subset (Fisher
// 1958; Breiman et al. 1984). More classes or outputs: all subsets if there are few categories.
// Otherwise the best prefix of several orders: by each class's fraction, and by the first principal
// component of the class fractions (Coppersmith, Hong, Hosking 1999).
template <Scanner S>
void scan_categorical(S& scanner, const ScanRequest& request, ScanScratch& scratch, Split& best) {
  const table::CodedColumn& column = *request.column;
  const table::EntryLayout layout = scanner.layout();
  const std::size_t size = scanner.stat_size();
  const common::Row n = request.node.n_rows;
  const common::Row margin = std::max<common::Row>(request.limits.min_samples_leaf, 1);

  struct Group {
    common::Code code;
    common::Row n_rows;
    double key;
  };
  std::vector<Group> groups;
  std::vector<double>& stats = scratch.group_stats;
  stats.clear();
  for (common::Row i = 0; i < request.n_entries;) {
    const common::Code code = layout.code(request.entries[i]);
    stats.resize(stats.size() + size, 0.0);
    double* stat = stats.data() + stats.size() - size;
    const common::Row begin = i;
    for (; i < request.n_entries && layout.code(request.entries[i]) == code; ++i) {
      scanner.add(stat, request.entries[i]);
    }
    groups.push_back({code, i - begin, 0.0});
  }
  if (request.n_implicit() > 0) {
    stats.resize(stats.size() + size);
    implicit_stat(scanner, request, stats.data() + stats.size() - size);
    groups.push_back({column.implicit_code, request.n_implicit(), 0.0});
  }
  const std::size_t m = groups.size();
  if (m < 2) return;

  std::vector<std::size_t> order(m);
  std::iota(order.begin(), order.end(), std::size_t{0});
  bool found = false;
  const auto keep = [&](common::Row n_left) {
    found = true;
    best.feature = request.feature;
    best.categorical = true;
    best.only_missing_right = false;
    best.n_left = n_left;
    best.left_codes.clear();
  };

  if (!scanner.one_dimensional() && m <= max_enumerated) {
    // Gray code order: one category changes sides per step. A subset and its complement are the
    // same split, so the last category always stays right.
    scanner.reset(request.node.stat);
    common::Row n_left = 0;
    std::uint32_t subset = 0;
    for (std::uint32_t step = 1; step < (std::uint32_t{1} << (m - 1)); ++step) {
      const int g = std::countr_zero(step);
      subset ^= std::uint32_t{1} << g;
      const double* stat = stats.data() + static_cast<std::size_t>(g) * size;
      if ((subset >> g) & 1) {
        scanner.move_block(stat);
        n_left += groups[static_cast<std::size_t>(g)].n_rows;
      } else {
        scanner.move_back(stat);
        n_left -= groups[static_cast<std::size_t>(g)].n_rows;
      }
      if (n_left < margin || n - n_left < margin) continue;
      if (!improves(scanner, request, n_left, n - n_left, best)) continue;
      keep(n_left);
      for (std::size_t k = 0; k < m; ++k) {
        if ((subset >> k) & 1) best.left_codes.push_back(groups[k].code);
      }
    }
  } else {
    std::vector<double> component;
    const std::size_t n_directions = scanner.n_directions();
    if (n_directions > 1) {
      component = first_principal_component(stats.data(), m, size, 1, n_directions);
    }
    for (std::size_t direction = 0; direction < n_directions + (n_directions > 1); ++direction) {
      for (std::size_t g = 0; g < m; ++g) {
        const double* stat = stats.data() + g * size;
        double key = 0;
        if (direction < n_directions) {
          key = scanner.order_key(stat, direction);
        } else {
          for (std::size_t k = 0; k < n_directions; ++k) {
            key += component[k] * scanner.order_key(stat, k);
          }
        }
        groups[g].key = key;
      }
      std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return groups[a].key < groups[b].key ||
               (groups[a].key == groups[b].key && groups[a].code < groups[b].code);
      });
      scanner.reset(request.node.stat);
      common::Row n_left = 0;
      for (std::size_t p = 0; p + 1 < m; ++p) {
        scanner.move_block(stats.data() + order[p] * size);
        n_left += groups[order[p]].n_rows;
        if (n_left < margin || n - n_left < margin) continue;
        if (!improves(scanner, request, n_left, n - n_left, best)) continue;
        keep(n_left);
        for (std::size_t k = 0; k <= p; ++k) best.left_codes.push_back(groups[order[k]].code);
      }
    }
  }
  if (!found) return;
  std::sort(best.left_codes.begin(), best.left_codes.end());
  bool any_missing = false;
  for (const Group& group : groups) any_missing |= column.is_missing(group.code);
  best.missing_left = any_missing ? std::binary_search(best.left_codes.begin(),
                                                       best.left_codes.end(), column.missing_code)
                                  : best.n_left > n - best.n_left;
}

// All scans that scan_dense does not support.
template <Scanner S>
void scan_other(S& scanner, const ScanRequest& request, ScanScratch& scratch, Split& best) {
  if (request.before != nullptr) {
    scan_range(scanner, request, best);
  } else if (request.column->categorical) {
    scan_categorical(scanner, request, scratch, best);
  } else {
    scan_numeric(scanner, request, scratch, best);
  }
}

// Whether scan_dense applies: numeric, an entry for every row of the node, no missing value.
inline bool is_dense(const ScanRequest& request, const table::EntryLayout& layout) {
  const table::CodedColumn& column = *request.column;
  return request.before == nullptr && !column.categorical &&
         request.n_entries == request.node.n_rows &&
         !(column.has_missing &&
           column.is_missing(layout.code(request.entries[request.n_entries - 1])));
}

}  // namespace spinney::criterion
