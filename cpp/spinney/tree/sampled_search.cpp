// Best splits over a random subset of the columns at each node. A node owns only its rows; drawn
// columns are gathered in batches of eight lanes. Nodes of up to 256 rows sort the lanes together.
// Larger nodes of a forest use histograms of cells. Larger nodes of a single tree, and columns or
// criteria without lane support, are sorted and scanned column by column.
#include <algorithm>
#include <cmath>
#include <limits>

#include "spinney/common/dispatch.h"
#include "spinney/common/random.h"
#include "spinney/table/radix_sort.h"
#include "spinney/tree/row_search.h"

namespace spinney::tree {

using common::Code;
using common::dispatch;
using common::Row;

namespace {

// Below this number of entries, a comparison sort is faster than a radix sort.
constexpr Row radix_from = 400;

template <std::size_t width, class T>
SPINNEY_INLINE void gather_keys(const T* codes, std::size_t stride, const Row* rows, Row n,
                                const Batch& batch, criterion::LaneKeys* keys) {
  for (Row i = 0; i < n; ++i) {
    const T* const row = codes + static_cast<std::size_t>(rows[i]) * stride;
    for (std::size_t l = 0; l < width; ++l) {
      keys[i].lane[l] =
          (static_cast<std::uint32_t>(row[batch.feature[l]]) << criterion::lane_position_bits) |
          static_cast<std::uint32_t>(i);
    }
  }
}

// out[lane][i] = code of the i-th row.
template <std::size_t width, class T>
SPINNEY_INLINE void gather_rows(const T* codes, std::size_t stride, const Row* rows, Row n,
                                const Batch& batch, Code* const* out) {
  for (Row i = 0; i < n; ++i) {
    const T* const row = codes + static_cast<std::size_t>(rows[i]) * stride;
    for (std::size_t l = 0; l < width; ++l) out[l][i] = static_cast<Code>(row[batch.feature[l]]);
  }
}

template <std::size_t width, class T>
SPINNEY_INLINE void gather_sorted(const T* codes, std::size_t stride, const Row* rows, Row n,
                                  const Batch& batch, criterion::LaneKeys* keys) {
  gather_keys<width>(codes, stride, rows, n, batch, keys);
  criterion::sort_lanes(keys, n);
}

struct CodeRange {
  Code low;
  Code high;
};

template <class T>
SPINNEY_INLINE CodeRange find_range(const T* codes, Row n) {
  T low = std::numeric_limits<T>::max();
  T high = 0;
  for (Row i = 0; i < n; ++i) {
    low = codes[i] < low ? codes[i] : low;
    high = codes[i] > high ? codes[i] : high;
  }
  return {low, high};
}

SPINNEY_INLINE void subtract(std::uint8_t* cells, Row n, Code low) {
  for (Row i = 0; i < n; ++i) cells[i] = static_cast<std::uint8_t>(cells[i] - low);
}

SPINNEY_INLINE void cut_cells(const Code* codes, Row n, Code low, unsigned shift,
                              std::uint8_t* cells) {
  for (Row i = 0; i < n; ++i) cells[i] = static_cast<std::uint8_t>((codes[i] - low) >> shift);
}

class SampledSearch final : public RowSearch {
 public:
  SampledSearch(SearchInputs inputs, const PreparedTable& prepared)
      : RowSearch(std::move(inputs)), codes_(prepared.codes) {}

  void find(Node& node, Worker& worker, int, criterion::Split& best) override {
    if (worker.features.empty()) worker.features = in_.features();
    in_.criterion.prepare(in_.rows.data() + node.begin, node.n_rows(), worker.node_scratch);
    const criterion::NodeView view = node.view();
    const bool unlimited = in_.options.min_weight_leaf <= 0 && in_.options.monotonic_cst.empty();
    const criterion::LaneCriterion* const lanes = unlimited ? lanes_ : nullptr;
    const criterion::LaneCriterion* const small_lanes =
        lanes != nullptr && lanes->fits_lanes(view) ? lanes : nullptr;
    const bool small = node.n_rows() <= criterion::max_lane_rows &&
                       codes_.max_codes() <= criterion::max_lane_codes;
    const double perfect = in_.criterion.perfect_score(view);
    ColumnDraw draw(worker.features, worker.swaps,
                    common::Stream(in_.options.seed, common::Purpose::features, node.key),
                    n_drawn_);
    bool any_varies = false;
    Batch batch;
    while (draw.next(node, any_varies, batch)) {
      if (small) {
        any_varies |= try_sorted(node, batch, small_lanes, worker, best);
      } else if (lanes != nullptr && in_.options.coarse) {
        any_varies |= try_cells(node, batch, *lanes, worker, best);
      } else {
        bool varies = false;
        for (std::size_t l = 0; l < batch.n && !(batch.only_first && varies); ++l) {
          varies |= try_column(node, batch.feature[l], worker, best);
        }
        any_varies |= varies;
      }
      if (best.score >= perfect) return;
    }
  }

  void partition_rows(const Node& node, criterion::Split& split, Worker& worker) override {
    const auto feature = static_cast<std::size_t>(split.feature);
    if (reads_columns(node.n_rows())) {
      codes_.visit_column(feature, [&](const auto* codes) {
        partition(node, split, worker, [&](Row row) { return static_cast<Code>(codes[row]); });
      });
    } else {
      codes_.visit([&](const auto* codes) {
        const auto* column = codes + feature;
        const std::size_t stride = codes_.n_features();
        partition(node, split, worker,
                  [&](Row row) { return static_cast<Code>(column[row * stride]); });
      });
    }
  }

  double threshold(const criterion::Split& split) const override {
    if (split.categorical) return std::numeric_limits<double>::quiet_NaN();
    if (split.only_missing_right) return std::numeric_limits<double>::infinity();
    const table::Column& column = in_.table.columns[static_cast<std::size_t>(split.feature)];
    const double below = column.value(split.below);
    const double above = column.value(split.above);
    const double middle = midpoint(below, above);
    return in_.options.narrow_thresholds ? narrowed(middle, below, above) : middle;
  }

  double cost(const Node& node) const override {
    return 10.0 * static_cast<double>(node.n_rows()) * static_cast<double>(n_drawn_);
  }

 private:
  criterion::ScanRequest request(const Node& node, std::size_t feature) const {
    criterion::ScanRequest request;
    request.node = node.view();
    request.column = &codes_.column(feature);
    request.feature = static_cast<std::int32_t>(feature);
    request.monotonic = in_.options.monotonic_cst.empty() ? 0 : in_.options.monotonic_cst[feature];
    request.limits = {static_cast<Row>(in_.options.min_samples_leaf), in_.options.min_weight_leaf};
    return request;
  }

  template <class CodeOf>
  void partition(const Node& node, criterion::Split& split, Worker& worker, const CodeOf& code_of) {
    if (split.categorical) {
      partition_by(node, worker, [&](Row row) {
        return std::binary_search(split.left_codes.begin(), split.left_codes.end(), code_of(row));
      });
      return;
    }
    const Code limit = split.left_code;
    if (split.complete) {
      const Code missing = codes_.column(static_cast<std::size_t>(split.feature)).missing_code;
      const bool missing_left = split.missing_left;
      partition_by(node, worker, [&](Row row) {
        const Code code = code_of(row);
        return (code <= limit) | ((code == missing) & missing_left);
      });
      return;
    }
    // No value is missing. The partition also finds the rows on both sides of the threshold.
    Code below = 0;
    Code above = std::numeric_limits<Code>::max();
    split.n_left = partition_by(node, worker, [&](Row row) {
      const Code code = code_of(row);
      const bool left = code <= limit;
      if (left && code >= below) {
        below = code;
        split.below = row;
      }
      if (!left && code < above) {
        above = code;
        split.above = row;
      }
      return left;
    });
    split.left_code = below;
    split.missing_left = 2 * split.n_left > node.n_rows();
    split.complete = true;
  }

  table::Entry entry(Code code, Row row) const {
    const bool labelled = in_.layout.label_bits > 0;
    return in_.layout.pack(code, row, labelled ? in_.targets.labels[row] : 0);
  }
  // Categorical columns, and columns with missing values in the node, need their own scans.
  bool is_plain(std::size_t feature, Code highest) const {
    const table::CodedColumn& column = codes_.column(feature);
    return !column.categorical && !(column.has_missing && highest == column.missing_code);
  }

  criterion::LaneTask task(const Node& node, const Batch& batch) const {
    return {span(node), batch.n, margin()};
  }

  // Searches a small node: sorts the lanes and scans them together if `lanes` is not null. Returns
  // whether any column varies.
  bool try_sorted(Node& node, const Batch& batch, const criterion::LaneCriterion* lanes,
                  Worker& worker, criterion::Split& best) const {
    const Row n = node.n_rows();
    const Row* rows = in_.rows.data() + node.begin;
    worker.lanes.resize(criterion::max_lane_rows);
    criterion::LaneKeys* const keys = worker.lanes.data();
    codes_.visit([&](const auto* codes) {
      using T = std::remove_const_t<std::remove_pointer_t<decltype(codes)>>;
      criterion::with_lanes(batch.n, [&](auto width) {
        dispatch<gather_sorted<width(), T>>(codes, codes_.n_features(), rows, n, batch, keys);
      });
    });
    criterion::LaneBest found;
    found.clear();
    if (lanes != nullptr) lanes->scan_lanes(node.view(), task(node, batch), keys, found);
    bool varies = false;
    for (std::size_t l = 0; l < batch.n; ++l) {
      const std::size_t feature = batch.feature[l];
      const Code low = keys[0].lane[l] >> criterion::lane_position_bits;
      const Code high = keys[n - 1].lane[l] >> criterion::lane_position_bits;
      if (low == high) {
        node.mark_constant(feature, codes_.n_features());
        continue;
      }
      varies = true;
      if (lanes != nullptr && is_plain(feature, high)) {
        if (found.at[l] != criterion::LaneBest::none && found.score[l] > best.score) {
          const Row at = found.at[l];
          const auto row_at = [&](Row i) {
            return rows[keys[i].lane[l] & (criterion::max_lane_rows - 1)];
          };
          best.clear();
          best.score = found.score[l];
          best.feature = static_cast<std::int32_t>(feature);
          best.n_left = at + 1;
          best.missing_left = best.n_left > n - best.n_left;
          best.only_missing_right = false;
          best.left_code = keys[at].lane[l] >> criterion::lane_position_bits;
          best.below = row_at(at);
          best.above = row_at(at + 1);
        }
      } else {
        worker.entries.resize(n);
        for (Row i = 0; i < n; ++i) {
          const std::uint32_t key = keys[i].lane[l];
          worker.entries[i] = entry(key >> criterion::lane_position_bits,
                                    rows[key & (criterion::max_lane_rows - 1)]);
        }
        if (is_ordered(feature)) {
          scan_ordered(node, feature, n, worker, best);
        } else {
          scan(node, feature, worker.entries.data(), n, worker, best);
        }
      }
      if (batch.only_first) break;
    }
    return varies;
  }

  // Fills worker.codes with the codes of the batch's columns, except columns with few codes.
  void gather(const Node& node, const Batch& batch, Worker& worker) const {
    const Row n = node.n_rows();
    const Row* rows = in_.rows.data() + node.begin;
    Code* out[criterion::n_lanes];
    for (std::size_t l = 0; l < criterion::n_lanes; ++l) {
      if (worker.codes[l].size() < n) worker.codes[l].resize(n);
      out[l] = worker.codes[l].data();
    }
    if (reads_columns(n)) {
      for (std::size_t l = 0; l < batch.n; ++l) {
        if (has_few_codes(batch.feature[l])) continue;
        codes_.visit_column(batch.feature[l], [&](const auto* codes) {
          for (Row i = 0; i < n; ++i) out[l][i] = static_cast<Code>(codes[rows[i]]);
        });
      }
      return;
    }
    codes_.visit([&](const auto* codes) {
      criterion::with_lanes(batch.n, [&](auto width) {
        gather_rows<width()>(codes, codes_.n_features(), rows, n, batch, out);
      });
    });
  }

  bool has_few_codes(std::size_t feature) const {
    return codes_.column(feature).missing_code < criterion::max_cells;
  }

  // The cells of one column in a large node.
  struct Cells {
    CodeRange range;
    unsigned shift;  // cell = (code − range.low) >> shift
  };
  Cells cut(const Node& node, std::size_t feature, const Code* codes, std::size_t n_cells,
            Worker& worker) const {
    const Row n = node.n_rows();
    if (worker.cells.size() < n) worker.cells.resize(n);
    std::uint8_t* const cells = worker.cells.data();
    if (has_few_codes(feature) && reads_columns(n)) {
      const Row* rows = in_.rows.data() + node.begin;
      codes_.visit_column(feature, [&](const auto* column) {
        for (Row i = 0; i < n; ++i) cells[i] = static_cast<std::uint8_t>(column[rows[i]]);
      });
      const CodeRange range = dispatch<find_range<std::uint8_t>>(cells, n);
      if (range.low > 0 && range.low < range.high) dispatch<subtract>(cells, n, range.low);
      return {range, 0};
    }
    const CodeRange range = dispatch<find_range<Code>>(codes, n);
    unsigned shift = 0;
    while (((range.high - range.low) >> shift) >= n_cells) ++shift;
    if (range.low < range.high) dispatch<cut_cells>(codes, n, range.low, shift, cells);
    return {range, shift};
  }

  // Searches a large node: a histogram of cells per column, then the values next to the best cut.
  bool try_cells(Node& node, const Batch& batch, const criterion::LaneCriterion& lanes,
                 Worker& worker, criterion::Split& best) const {
    const Row n = node.n_rows();
    gather(node, batch, worker);
    const std::size_t n_cells = n < 4096 ? 64 : criterion::max_cells;
    bool varies = false;
    criterion::CellCut found;
    std::size_t chosen = criterion::n_lanes;
    Cells chosen_cells{};
    for (std::size_t l = 0; l < batch.n && !(batch.only_first && varies); ++l) {
      const Cells own = cut(node, batch.feature[l], worker.codes[l].data(), n_cells, worker);
      if (own.range.low == own.range.high) {
        node.mark_constant(batch.feature[l], codes_.n_features());
        continue;
      }
      varies = true;
      if (!is_plain(batch.feature[l], own.range.high)) {
        try_column(node, batch.feature[l], worker, best);
        continue;
      }
      const std::size_t n_used = ((own.range.high - own.range.low) >> own.shift) + 1;
      const criterion::CellTask task{span(node), worker.cells.data(), n_used, margin()};
      const criterion::CellCut cut = lanes.scan_cells(node.view(), task, worker.scans[0]);
      if (!(cut.score > found.score)) continue;
      found = cut;
      chosen = l;
      chosen_cells = own;
    }
    if (chosen == criterion::n_lanes || !(found.score > best.score)) return varies;
    const CodeRange range = chosen_cells.range;
    if (chosen_cells.shift == 0) {  // one value per cell
      best.clear();
      best.score = found.score;
      best.feature = static_cast<std::int32_t>(batch.feature[chosen]);
      best.left_code = range.low + found.at;
      best.complete = false;
      best.only_missing_right = false;
    } else {
      const Code* codes = worker.codes[chosen].data();
      dispatch<cut_cells>(codes, n, range.low, chosen_cells.shift, worker.cells.data());
      refine(node, batch.feature[chosen], codes, found.at, worker, best);
    }
    return varies;
  }

  // Scans the values of the cells on both sides of the cut: `at` and the next cell with rows.
  void refine(const Node& node, std::size_t feature, const Code* codes, std::uint32_t at,
              Worker& worker, criterion::Split& best) const {
    const Row n = node.n_rows();
    const Row* rows = in_.rows.data() + node.begin;
    std::uint32_t next = std::numeric_limits<std::uint32_t>::max();
    for (Row i = 0; i < n; ++i) {
      const std::uint32_t cell = worker.cells[i];
      next = cell > at && cell < next ? cell : next;
    }
    if (worker.rows.size() < n) worker.rows.resize(n);
    worker.entries.resize(n);
    Row n_before = 0;
    std::size_t n_inside = 0;
    for (Row i = 0; i < n; ++i) {
      const std::uint32_t cell = worker.cells[i];
      worker.rows[n_before] = rows[i];
      n_before += cell < at ? 1 : 0;
      worker.entries[n_inside] = entry(codes[i], rows[i]);
      n_inside += cell == at || cell == next ? 1 : 0;
    }
    const table::Entry* inside = sort(worker, n_inside, code_bits(feature));
    worker.left_stat.resize(in_.criterion.stat_size());
    in_.criterion.sum(worker.rows.data(), n_before, worker.left_stat.data());
    criterion::ScanRequest part = request(node, feature);
    part.entries = inside;
    part.n_entries = static_cast<Row>(n_inside);
    part.before = worker.left_stat.data();
    part.n_before = n_before;
    in_.criterion.scan(part, worker.node_scratch, worker.scans[0], best);
  }

  int code_bits(std::size_t feature) const {
    return table::bits_of(codes_.column(feature).missing_code);
  }

  // Sorts worker.entries[0 … n) by code; codes have n_bits bits.
  const table::Entry* sort(Worker& worker, std::size_t n, int n_bits) const {
    if (n < radix_from) {
      std::sort(worker.entries.begin(), worker.entries.begin() + static_cast<std::ptrdiff_t>(n));
      return worker.entries.data();
    }
    worker.swap.resize(n);
    const int shift = in_.layout.code_shift();
    return table::radix_sort(worker.entries.data(), worker.swap.data(), n, shift, shift + n_bits);
  }

  void scan(const Node& node, std::size_t feature, const table::Entry* sorted, Row n,
            Worker& worker, criterion::Split& best) const {
    criterion::ScanRequest column = request(node, feature);
    column.entries = sorted;
    column.n_entries = n;
    in_.criterion.scan(column, worker.node_scratch, worker.scans[0], best);
  }

  // Searches one column; returns whether it varies in the node.
  bool try_column(Node& node, std::size_t feature, Worker& worker, criterion::Split& best) const {
    const Row n = node.n_rows();
    const Row* rows = in_.rows.data() + node.begin;
    worker.entries.resize(n);
    Code low = std::numeric_limits<Code>::max();
    Code high = 0;
    codes_.visit([&](const auto* codes) {
      for (Row i = 0; i < n; ++i) {
        const Row row = rows[i];
        const auto code = static_cast<Code>(codes[row * codes_.n_features() + feature]);
        low = std::min(low, code);
        high = std::max(high, code);
        worker.entries[i] = entry(code, row);
      }
    });
    if (low == high) {
      node.mark_constant(feature, codes_.n_features());
      return false;
    }
    if (is_ordered(feature)) {
      scan_ordered(node, feature, n, worker, best);
    } else {
      scan(node, feature, sort(worker, n, table::bits_of(high)), n, worker, best);
    }
    return true;
  }

  bool is_ordered(std::size_t feature) const {
    return in_.options.category_ranks != nullptr && !(*in_.options.category_ranks)[feature].empty();
  }

  // Scans the ranks of categories, in the order of the tree, as numbers.
  void scan_ordered(const Node& node, std::size_t feature, Row n, Worker& worker,
                    criterion::Split& best) const {
    const std::vector<Code>& ranks = (*in_.options.category_ranks)[feature];
    for (Row i = 0; i < n; ++i) {
      const table::Entry entry = worker.entries[i];
      const Code code = in_.layout.code(entry);
      worker.entries[i] =
          in_.layout.pack(ranks[code], in_.layout.row(entry), in_.layout.label(entry));
    }
    const table::Entry* sorted = sort(worker, n, table::bits_of(ranks.size()));
    table::CodedColumn ranked;  // numeric, no value missing
    ranked.missing_code = static_cast<Code>(ranks.size());
    criterion::ScanRequest request_ = request(node, feature);
    request_.column = &ranked;
    request_.entries = sorted;
    request_.n_entries = n;
    const double score = best.score;
    const double tie = best.tie;
    in_.criterion.scan(request_, worker.node_scratch, worker.scans[0], best);
    const bool found_better = best.score != score || best.tie != tie;
    if (!found_better) return;
    best.categorical = best.ordered = true;
    best.left_codes.clear();
    for (Code code = 0; code < ranks.size(); ++code) {
      if (ranks[code] <= best.left_code) best.left_codes.push_back(code);
    }
    best.missing_left = ranks.back() <= best.left_code;
  }

  const table::CodeMatrix& codes_;
};

}  // namespace

std::unique_ptr<Search> make_sampled_search(SearchInputs inputs, const PreparedTable& prepared) {
  return std::make_unique<SampledSearch>(std::move(inputs), prepared);
}

}  // namespace spinney::tree
