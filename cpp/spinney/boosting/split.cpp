#include "spinney/boosting/split.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"

namespace spinney::boosting {

using common::parallel_for;
using common::worthwhile_threads;

namespace {

// The best cut of a numeric column. prefix[c] is the sum of the left side of cut c; the array is
// padded with the total to a multiple of `lanes`. Sides with fewer Hessian units than min_units are
// not allowed.
//
// With a = H_L + λ, b = H_R + λ and S = a + b, which is the same for all cuts,
// G_L²/a + G_R²/b = G²/S + (G_L S − G a)²/(a b S): cuts differ in the last term only. Single
// precision is enough to compare cuts (relative error about 1e-6) and fits twice as many into a
// vector. The gain of the best cut is computed again in double precision.
constexpr std::size_t lanes = 16;

struct CutTask {
  const PackedSum* prefix;
  std::uint32_t n;
  PackedSum total;
  std::uint32_t min_units;
  // As fractions of S: one Hessian unit, and λ.
  float unit;
  float l2;
};

SPINNEY_INLINE std::uint32_t best_cut(const CutTask& task) {
  const std::uint32_t total_hessian = hessian_units(task.total);
  const std::uint32_t min_units = task.min_units;
  const float unit = task.unit;
  const float l2 = task.l2;
  constexpr float gradient_unit = 0x1p-31F;  // avoids overflow
  const float total_gradient = static_cast<float>(gradient_units(task.total)) * gradient_unit;
  // Non-negative floats have the order of their bits; -1 is a negative integer, too.
  std::array<std::int32_t, 256 + lanes> scores;
  const std::size_t n = (task.n + lanes - 1) / lanes * lanes;
  std::int32_t top = std::numeric_limits<std::int32_t>::min();
  for (std::size_t i = 0; i < n; ++i) {
    const auto hessian = static_cast<std::uint32_t>(task.prefix[i]);
    const auto gradient = static_cast<std::int32_t>(task.prefix[i] >> 32);
    const std::uint32_t other = total_hessian - hessian;
    const float a = static_cast<float>(hessian) * unit + l2;
    const float b = static_cast<float>(other) * unit + l2;
    const float apart = static_cast<float>(gradient) * gradient_unit - total_gradient * a;
    const float score = apart * apart / (a * b);
    const std::uint32_t less = hessian < other ? hessian : other;
    scores[i] = std::bit_cast<std::int32_t>(less >= min_units ? score : -1.0F);
    top = std::max(top, scores[i]);
  }
  if (top < 0) return task.n;
  // The first of the best cuts. Adding a penalty instead of a condition keeps the loop vectorized.
  std::int32_t found = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t worse = scores[i] != top ? 1 << 16 : 0;
    found = std::min(found, static_cast<std::int32_t>(i) + worse);
  }
  return static_cast<std::uint32_t>(found);
}

constexpr std::size_t count_block = 2048;  // rows counted at a time

class ColumnSearch {
 public:
  ColumnSearch(const table::BinnedMatrix& matrix, const NodeToSplit& node, const PackedScale& scale,
               const SplitRules& rules)
      : matrix_(matrix), node_(node), scale_(scale), rules_(rules) {
    total_ = unpack(node.total, scale);
    bounded_ = !rules.monotonic_cst.empty();
    n_counted_ = static_cast<std::uint64_t>(node.n_counted);
    of_rows_ = node.sums.packed;
    if (node.histogram == nullptr && node.sums.by_row && node.rows != nullptr) {
      for (std::size_t i = 0; i < node.n_rows; ++i) gathered_[i] = of_rows_[node.rows[i]];
      of_rows_ = gathered_.data();
    }
    parent_score_ = score(total_, rules_.l2_regularization);
    rounding_ = rounding_share * parent_score_;
    const double units = std::ceil(rules.min_hessian_leaf / scale.hessian);
    const double fewest =
        scale.counts ? std::max(units, static_cast<double>(rules.min_samples_leaf)) : units;
    min_units_ = static_cast<std::uint32_t>(std::clamp(fewest, 1.0, 0x1p32 - 1));
    const double l2_units = rules.l2_regularization / scale.hessian;
    const double all = static_cast<double>(hessian_units(node.total)) + 2 * l2_units;
    unit_ = static_cast<float>(1 / all);
    l2_ = static_cast<float>(l2_units / all);
    certain_units_ = scale.counts ? static_cast<std::uint64_t>(rules.min_samples_leaf)
                                  : static_cast<std::uint64_t>(rules.min_samples_leaf) * scale.most;
  }

  // exact: the rows have been counted, so the result is certain. Small nodes are always counted.
  Candidate search(std::uint32_t feature, bool exact) {
    counts_ = exact ? row_counts_.data() : nullptr;
    Candidate best;
    best.split.gain = 0;
    best.split.feature = feature;
    const table::BinnedColumn& column = matrix_.column(feature);
    if (node_.histogram == nullptr) {
      add_rows(feature);
      sums_ = own_sums_.data();
    } else if (!column.bundled) {
      sums_ = node_.histogram + column.start;
    } else {
      unbundle(column);
      sums_ = own_sums_.data();
    }
    if (column.categorical) {
      search_categories(column, best);
    } else if (!bounded_ && rules_.l1_regularization == 0) {
      search_plainly(column, best);
    } else {
      search_numbers(feature, column, best);
    }
    if (node_.histogram == nullptr) clear_rows();
    return best;
  }

  // Counts the rows of each code of the split's column until both sides have enough, usually after
  // a few blocks. False: a side has too few; all rows are counted then.
  bool leaves_enough(const BinSplit& split) {
    row_counts_.fill(0);
    for (std::size_t i = 0; i < node_.n_rows; i += count_block) {
      count(split.feature, i, std::min(node_.n_rows, i + count_block));
      if (has_enough(split)) return true;
    }
    return false;
  }

  // Counts the rows of each code of a column.
  const std::array<std::uint64_t, 256>& count_all(std::uint32_t feature) {
    row_counts_.fill(0);
    for (std::size_t i = 0; i < node_.n_rows; i += count_block) {
      count(feature, i, std::min(node_.n_rows, i + count_block));
    }
    return row_counts_;
  }

  // Sets the counts over all workers.
  void set_counts(const std::int64_t* counts) {
    for (std::size_t code = 0; code < 256; ++code) {
      row_counts_[code] = static_cast<std::uint64_t>(counts[code]);
    }
  }

  // Whether both sides have enough of the counted rows.
  bool has_enough(const BinSplit& split) const {
    const table::BinnedColumn& column = matrix_.column(split.feature);
    std::uint64_t n_left = 0;
    std::uint64_t n_right = 0;
    for (std::uint32_t code = 0; code < column.n_codes(); ++code) {
      (split.goes_left(code, column.missing_code()) ? n_left : n_right) += row_counts_[code];
    }
    return std::min(n_left, n_right) >= rules_.min_samples_leaf;
  }

 private:
  double soft(double gradient) const {
    if (rules_.l1_regularization == 0) return gradient;
    const double size = std::abs(gradient) - rules_.l1_regularization;
    return size > 0 ? std::copysign(size, gradient) : 0.0;
  }

  // Twice the decrease of the objective by a leaf.
  double score(const Sums& sums, double l2) const {
    const double below = sums.hessian + l2;
    if (!(below > 0)) return 0;
    const double gradient = soft(sums.gradient);
    if (!bounded_) return gradient * gradient / below;
    const double weight = std::clamp(-gradient / below, node_.bounds.low, node_.bounds.high);
    return -(2 * gradient * weight + below * weight * weight);
  }

  double score_of_both(const Sums& a, const Sums& b, double l2) const {
    if (bounded_ || rules_.l1_regularization != 0) return score(a, l2) + score(b, l2);
    const double below_a = a.hessian + l2;
    const double below_b = b.hessian + l2;
    if (!(below_a > 0 && below_b > 0)) return score(a, l2) + score(b, l2);
    return (a.gradient * a.gradient * below_b + b.gradient * b.gradient * below_a) /
           (below_a * below_b);
  }

  // Whether a side may be a leaf: 0 no, 1 yes, 2 unknown until its rows are counted.
  int allows(PackedSum side, std::uint64_t n_rows) const {
    const std::uint32_t units = hessian_units(side);
    if (units == 0 || static_cast<double>(units) * scale_.hessian < rules_.min_hessian_leaf)
      return 0;
    if (counts_ != nullptr) return n_rows >= rules_.min_samples_leaf ? 1 : 0;
    if (units >= certain_units_) return 1;
    return scale_.counts ? 0 : 2;
  }

  void offer(PackedSum left, std::uint64_t n_left, double l2, std::int8_t sign, Candidate& best,
             bool& better) const {
    better = false;
    const PackedSum right = node_.total - left;
    const int left_fits = allows(left, n_left);
    if (left_fits == 0) return;
    const int right_fits = allows(right, n_counted_ - n_left);
    if (right_fits == 0) return;
    const Sums a = unpack(left, scale_);
    const Sums b = unpack(right, scale_);
    const double gain = 0.5 * (score_of_both(a, b, l2) - parent_score_) - rules_.min_split_gain;
    if (!(gain > std::max(best.split.gain, rounding_))) return;
    if (sign != 0) {
      const double weight_left = leaf_weight(a, rules_, node_.bounds);
      const double weight_right = leaf_weight(b, rules_, node_.bounds);
      if (sign > 0 ? weight_left > weight_right : weight_left < weight_right) return;
    }
    best.split.gain = gain;
    best.split.left = left;
    best.uncertain = left_fits == 2 || right_fits == 2;
    better = true;
  }

  // The usual case: no bounds, no L1 penalty.
  void search_plainly(const table::BinnedColumn& column, Candidate& best) const {
    const PackedSum* const sums = sums_;
    const PackedSum missing = column.has_missing ? sums[column.missing_code()] : 0;
    std::array<PackedSum, 256 + lanes> prefix;
    std::array<std::uint8_t, 256 + 1> codes;  // of the sums, if rows are counted
    const int n_directions = missing != 0 ? 2 : 1;
    for (int direction = 0; direction < n_directions; ++direction) {
      const std::uint32_t n_cuts =
          direction == 0 && missing != 0 ? column.n_bins : column.n_bins - 1;
      PackedSum left = direction == 1 ? missing : 0;
      std::uint32_t n_sums = 0;
      std::uint32_t first = 0;
      if (counts_ == nullptr) {
        std::uint32_t end = n_cuts;
        if (!rules_.cuts.empty()) {
          first = rules_.cuts[best.split.feature][0];
          end = std::min(end, rules_.cuts[best.split.feature][1]);
        }
        if (first >= end) continue;
        for (std::uint32_t code = 0; code < end; ++code) prefix[code] = left += sums[code];
        n_sums = end - first;
      } else {
        // Only codes that occur and leave enough rows on both sides.
        std::uint64_t n_left = direction == 1 ? counts_[column.missing_code()] : 0;
        const std::uint64_t min_rows = rules_.min_samples_leaf;
        const std::uint64_t most_left = n_counted_ - std::min(n_counted_, min_rows);
        const auto add = [&](std::uint32_t code) {
          left += sums[code];
          n_left += counts_[code];
          codes[n_sums] = static_cast<std::uint8_t>(code);
          prefix[n_sums] = left;
          if (n_left > most_left) return false;
          n_sums += n_left >= min_rows ? 1 : 0;
          return true;
        };
        if (node_.histogram == nullptr) {
          for_codes([&](std::uint32_t code) { return code < n_cuts && add(code); });
        } else {
          for (std::uint32_t code = 0; code < n_cuts && add(code); ++code) {
          }
        }
        if (n_sums == 0) continue;
      }
      std::fill_n(prefix.begin() + first + n_sums, lanes, node_.total);
      const std::uint32_t found = common::dispatch<best_cut>(
          {prefix.data() + first, n_sums, node_.total, min_units_, unit_, l2_});
      if (found == n_sums) continue;
      const PackedSum chosen = prefix[first + found];
      const double score = score_of_both(
          unpack(chosen, scale_), unpack(node_.total - chosen, scale_), rules_.l2_regularization);
      const double gain = 0.5 * (score - parent_score_) - rules_.min_split_gain;
      if (!(gain > std::max(best.split.gain, rounding_))) continue;
      best.split.gain = gain;
      best.split.left = chosen;
      best.split.code = counts_ != nullptr ? codes[found] : first + found;
      best.split.missing_left = direction == 1;
      best.uncertain =
          counts_ == nullptr && (hessian_units(best.split.left) < certain_units_ ||
                                 hessian_units(node_.total - best.split.left) < certain_units_);
    }
    if (n_directions == 1) send_missing_to_larger(best.split);
  }

  // Values that do not occur in this node follow the majority.
  void send_missing_to_larger(BinSplit& split) const {
    split.missing_left = 2 * std::uint64_t{hessian_units(split.left)} >= hessian_units(node_.total);
  }

  void search_numbers(std::uint32_t feature, const table::BinnedColumn& column,
                      Candidate& best) const {
    const PackedSum* const sums = sums_;
    const std::int8_t sign =
        rules_.monotonic_cst.empty() ? std::int8_t{0} : rules_.monotonic_cst[feature];
    const PackedSum missing = column.has_missing ? sums[column.missing_code()] : 0;
    const std::uint64_t n_missing =
        counts_ != nullptr && column.has_missing ? counts_[column.missing_code()] : 0;
    // Without missing values in the node, both directions are equal; later missing values follow
    // the majority.
    const int n_directions = missing != 0 ? 2 : 1;
    for (int direction = 0; direction < n_directions; ++direction) {
      PackedSum left = direction == 1 ? missing : 0;
      std::uint64_t n_left = direction == 1 ? n_missing : 0;
      // The last cut separates missing values from all others.
      const std::uint32_t n_cuts =
          direction == 0 && missing != 0 ? column.n_bins : column.n_bins - 1;
      for (std::uint32_t code = 0; code < n_cuts; ++code) {
        if (counts_ != nullptr) n_left += counts_[code];
        if (sums[code] == 0) continue;
        left += sums[code];
        bool better = false;
        offer(left, n_left, rules_.l2_regularization, sign, best, better);
        if (better) {
          best.split.code = code;
          best.split.missing_left = direction == 1;
        }
      }
    }
    if (n_directions == 1) send_missing_to_larger(best.split);
  }

  void search_categories(const table::BinnedColumn& column, Candidate& best) const {
    const PackedSum* const sums = sums_;
    const std::uint32_t n_codes = column.n_codes();
    struct Ordered {
      double ratio;
      std::uint32_t code;
    };
    std::array<Ordered, 256> order;
    std::size_t n = 0;
    const double mean_hessian = total_.hessian / node_.n_counted;
    const double smooth = rules_.category_smooth * mean_hessian;
    for (std::uint32_t code = 0; code < n_codes; ++code) {
      if (sums[code] == 0) continue;
      const Sums s = unpack(sums[code], scale_);
      const double below = s.hessian + smooth;
      order[n++] = {below > 0 ? s.gradient / below : 0.0, code};
    }
    if (n < 2) return;
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n),
              [](const Ordered& a, const Ordered& b) {
                return a.ratio < b.ratio || (a.ratio == b.ratio && a.code < b.code);
              });
    // Two categories have one split, like a binary numeric column.
    const double l2 =
        n == 2 ? rules_.l2_regularization : rules_.l2_regularization + rules_.category_l2;
    PackedSum left = 0;
    std::uint64_t n_left = 0;
    std::size_t cut = n;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      left += sums[order[i].code];
      if (counts_ != nullptr) n_left += counts_[order[i].code];
      if (std::min(i + 1, n - i - 1) > rules_.max_category_group) continue;
      bool better = false;
      offer(left, n_left, l2, 0, best, better);
      if (better) cut = i;
    }
    if (cut == n) return;
    best.split.categorical = true;
    best.split.left_codes = {};
    for (std::size_t i = 0; i <= cut; ++i) {
      best.split.left_codes[order[i].code / 64] |= std::uint64_t{1} << (order[i].code % 64);
    }
    // Values that do not occur in this node follow the majority.
    const bool left_is_larger =
        2 * std::uint64_t{hessian_units(best.split.left)} >= hessian_units(node_.total);
    best.split.missing_left = left_is_larger;
    if (column.has_missing && sums[column.missing_code()] != 0) {
      best.split.missing_left = best.split.goes_left(column.missing_code(), 256);
    } else if (column.has_missing && left_is_larger) {
      best.split.left_codes[column.missing_code() / 64] |= std::uint64_t{1}
                                                           << (column.missing_code() % 64);
    }
    if (left_is_larger) {
      for (std::uint32_t code = 0; code < column.n_bins; ++code) {
        if (sums[code] == 0) {
          best.split.left_codes[code / 64] |= std::uint64_t{1} << (code % 64);
        }
      }
    }
  }

  // Sums of a column that shares a slot: that of its most frequent code is the total minus the
  // others.
  void unbundle(const table::BinnedColumn& column) {
    const PackedSum* at = node_.histogram + column.start;
    PackedSum rest = node_.total;
    for (std::uint32_t code = 0; code < column.n_codes(); ++code) {
      if (code == column.common_code) continue;
      own_sums_[code] = *at++;
      rest -= own_sums_[code];
    }
    own_sums_[column.common_code] = rest;
  }

  // Sums and numbers of rows of one column of a small node.
  void add_rows(std::uint32_t feature) {
    const std::size_t stride = matrix_.stride();
    const table::BinnedColumn& column = matrix_.column(feature);
    const std::uint8_t* const codes = matrix_.row_codes() + column.slot;
    const std::uint8_t* const code_of = column.bundled ? column.code_of.data() : nullptr;
    for (std::size_t i = 0; i < node_.n_rows; ++i) {
      const std::size_t row = node_.rows == nullptr ? i : node_.rows[i];
      const std::uint8_t found = codes[row * stride];
      const std::uint8_t code = code_of == nullptr ? found : code_of[found];
      own_sums_[code] += of_rows_[i];
      row_counts_[code] += count_of(row);
      occurs_[code / 64] |= std::uint64_t{1} << (code % 64);
    }
  }

  std::uint64_t count_of(std::size_t row) const {
    return node_.weights.whole ? static_cast<std::uint64_t>(node_.weights.values[row]) : 1;
  }

  void clear_rows() {
    for_codes([&](std::uint32_t code) {
      own_sums_[code] = 0;
      row_counts_[code] = 0;
      return true;
    });
    occurs_ = {};
  }

  // Calls body for each code that occurs, ascending, until it returns false.
  template <class Body>
  void for_codes(const Body& body) const {
    for (std::uint32_t word = 0; word < 4; ++word) {
      for (std::uint64_t bits = occurs_[word]; bits != 0; bits &= bits - 1) {
        if (!body(64 * word + static_cast<std::uint32_t>(std::countr_zero(bits)))) return;
      }
    }
  }

  void count(std::uint32_t feature, std::size_t begin, std::size_t end) {
    const table::BinCodes codes = matrix_.column_codes(feature);
    const common::Row* const rows = node_.rows;
    if (node_.weights.whole) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t row = rows == nullptr ? i : rows[i];
        row_counts_[codes[row]] += count_of(row);
      }
      return;
    }
    // Two arrays in turn: successive rows often have the same code, and an addition would wait for
    // the one before.
    std::array<std::array<std::uint16_t, 256>, 2> counts{};
    static_assert(count_block < 0xffff);
    const auto code_of = [&](std::size_t i) { return codes[rows == nullptr ? i : rows[i]]; };
    std::size_t i = begin;
    for (; i + 1 < end; i += 2) {
      ++counts[0][code_of(i)];
      ++counts[1][code_of(i + 1)];
    }
    if (i < end) ++counts[0][code_of(i)];
    for (std::size_t code = 0; code < 256; ++code) {
      row_counts_[code] += std::uint64_t{counts[0][code]} + counts[1][code];
    }
  }

  const table::BinnedMatrix& matrix_;
  const NodeToSplit& node_;
  const PackedScale& scale_;
  const SplitRules& rules_;
  Sums total_;
  double parent_score_ = 0;
  double rounding_ = 0;
  std::uint32_t min_units_ = 1;
  float unit_ = 0;
  float l2_ = 0;
  std::uint64_t certain_units_ = 1;
  bool bounded_ = false;
  const std::uint64_t* counts_ = nullptr;
  std::array<std::uint64_t, 256> row_counts_{};
  std::uint64_t n_counted_ = 0;
  const PackedSum* sums_ = nullptr;  // of the present column
  std::array<PackedSum, 256> own_sums_{};
  std::array<std::uint64_t, 4> occurs_{};
  const PackedSum* of_rows_ = nullptr;  // derivatives of a small node's rows
  std::array<PackedSum, few_node_rows> gathered_;
};

}  // namespace

void tighten_bounds(std::int8_t sign, const Sums& left, const Sums& right, const SplitRules& rules,
                    Bounds& left_bounds, Bounds& right_bounds) {
  const double a = leaf_weight(left, rules, left_bounds);
  const double b = leaf_weight(right, rules, right_bounds);
  const double middle = 0.5 * (a + b);
  if (sign > 0) {
    left_bounds.high = right_bounds.low = middle;
  } else if (sign < 0) {
    left_bounds.low = right_bounds.high = middle;
  }
}

double leaf_weight(const Sums& sums, double l1, double l2, const Bounds& bounds) {
  const double below = sums.hessian + l2;
  if (!(below > 0)) return std::clamp(0.0, bounds.low, bounds.high);
  double gradient = sums.gradient;
  if (l1 > 0) {
    const double size = std::abs(gradient) - l1;
    gradient = size > 0 ? std::copysign(size, gradient) : 0.0;
  }
  return std::clamp(-gradient / below, bounds.low, bounds.high);
}

double split_work(const table::BinnedMatrix& matrix, std::size_t n_rows, bool by_histogram) {
  if (by_histogram) return 1.2 * static_cast<double>(matrix.n_codes());
  return static_cast<double>(matrix.n_features()) * (100.0 + 2.0 * static_cast<double>(n_rows));
}

std::vector<std::array<std::uint32_t, 2>> useful_cuts(const table::BinnedMatrix& matrix,
                                                      std::size_t min_rows) {
  std::vector<std::array<std::uint32_t, 2>> cuts(matrix.n_features());
  for (std::size_t f = 0; f < cuts.size(); ++f) {
    const table::BinnedColumn& column = matrix.column(f);
    // Rows with a missing value may be on either side.
    const std::size_t n_missing = column.has_missing ? column.n_rows_of.back() : 0;
    std::size_t n_left = n_missing;
    std::size_t n_right =
        std::accumulate(column.n_rows_of.begin(), column.n_rows_of.end(), std::size_t{0});
    auto& [first, end] = cuts[f];
    first = column.n_bins;
    for (std::uint32_t code = 0; code < column.n_bins; ++code) {
      n_left += column.n_rows_of[code];
      n_right -= column.n_rows_of[code];
      if (n_left < min_rows || n_right < min_rows) continue;
      first = std::min(first, code);
      end = code + 1;
    }
  }
  return cuts;
}

namespace {

bool is_allowed(const table::BinnedMatrix& matrix, const NodeToSplit& node, std::size_t f) {
  return (node.allowed == nullptr || node.allowed[f] != 0) && matrix.column(f).n_codes() > 1;
}

// The best split of each column, from the node's histogram.
std::vector<Candidate> search_columns(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                                      const PackedScale& scale, const SplitRules& rules,
                                      int n_threads) {
  const std::size_t n_features = matrix.n_features();
  std::vector<Candidate> best(n_features);
  constexpr std::size_t block = 8;
  const double work = split_work(matrix, node.n_rows, true);
  parallel_for((n_features + block - 1) / block, worthwhile_threads(work, n_threads, true),
               [&](std::size_t block_index, int) {
                 ColumnSearch search(matrix, node, scale, rules);
                 const std::size_t end = std::min(n_features, (block_index + 1) * block);
                 for (std::size_t f = block_index * block; f < end; ++f) {
                   if (!is_allowed(matrix, node, f)) continue;
                   best[f] = search.search(static_cast<std::uint32_t>(f), false);
                 }
               });
  return best;
}

// The column with the largest gain, the first if several have it; best.size() if no split has a
// gain.
std::size_t find_winner(const std::vector<Candidate>& best) {
  std::size_t winner = best.size();
  double gain = 0;
  for (std::size_t f = 0; f < best.size(); ++f) {
    if (!(best[f].split.gain > gain)) continue;
    gain = best[f].split.gain;
    winner = f;
  }
  return winner;
}

// Uncertain columns with at least the gain of every certain one, the best first, a few at most.
std::vector<std::uint32_t> uncertain_columns(const std::vector<Candidate>& best) {
  constexpr std::size_t most = 4;
  double certain = 0;
  for (const Candidate& candidate : best) {
    if (!candidate.uncertain) certain = std::max(certain, candidate.split.gain);
  }
  std::vector<std::uint32_t> columns;
  for (std::uint32_t f = 0; f < best.size(); ++f) {
    if (best[f].uncertain && best[f].split.gain >= certain) columns.push_back(f);
  }
  std::stable_sort(columns.begin(), columns.end(), [&](std::uint32_t a, std::uint32_t b) {
    return best[a].split.gain > best[b].split.gain;
  });
  columns.resize(std::min(columns.size(), most));
  return columns;
}

}  // namespace

BinSplit find_split(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                    const PackedScale& scale, const SplitRules& rules, int n_threads) {
  ColumnSearch search(matrix, node, scale, rules);
  if (node.histogram == nullptr) {
    BinSplit found;
    for (std::size_t f = 0; f < matrix.n_features(); ++f) {
      if (!is_allowed(matrix, node, f)) continue;
      const BinSplit split = search.search(static_cast<std::uint32_t>(f), true).split;
      if (split.found() && split.gain > found.gain) found = split;
    }
    return found;
  }
  std::vector<Candidate> best = search_columns(matrix, node, scale, rules, n_threads);
  for (;;) {
    const std::size_t winner = find_winner(best);
    if (winner == best.size()) return {};
    if (!best[winner].uncertain || search.leaves_enough(best[winner].split)) {
      return best[winner].split;
    }
    best[winner] = search.search(static_cast<std::uint32_t>(winner), true);
    best[winner].uncertain = false;
  }
}

namespace {

void choose(OpenSplit& open) {
  const std::size_t winner = find_winner(open.best);
  const bool found = winner < open.best.size();
  open.split = found ? open.best[winner].split : BinSplit{};
  open.doubts.clear();
  if (found && open.best[winner].uncertain) open.doubts = uncertain_columns(open.best);
}

}  // namespace

OpenSplit find_open_split(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                          const PackedScale& scale, const SplitRules& rules, int n_threads) {
  OpenSplit open;
  open.best = search_columns(matrix, node, scale, rules, n_threads);
  choose(open);
  if (open.doubts.empty()) open.best = {};  // not needed again
  return open;
}

void count_doubts(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                  const PackedScale& scale, const SplitRules& rules, const OpenSplit& open,
                  std::int64_t* out) {
  ColumnSearch search(matrix, node, scale, rules);
  for (const std::uint32_t column : open.doubts) {
    for (const std::uint64_t count : search.count_all(column)) {
      *out++ = static_cast<std::int64_t>(count);
    }
  }
}

void settle_doubts(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                   const PackedScale& scale, const SplitRules& rules, const std::int64_t* counts,
                   OpenSplit& open) {
  for (const std::uint32_t column : open.doubts) {
    ColumnSearch search(matrix, node, scale, rules);
    search.set_counts(counts);
    Candidate& candidate = open.best[column];
    if (!search.has_enough(candidate.split)) candidate = search.search(column, true);
    candidate.uncertain = false;
    counts += 256;
  }
  choose(open);
}

}  // namespace spinney::boosting
