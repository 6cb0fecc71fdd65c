// Best splits over a random subset of the columns at each node. A node owns only its rows; the
// columns drawn are gathered there, eight at a time (lanes). Up to 256 rows they are sorted side by
// side. Larger nodes of a forest are counted in cells first; larger nodes of a single tree, and
// columns or criteria that lanes do not serve, are sorted one by one and scanned as everywhere.
#include <algorithm>
#include <cmath>
#include <limits>

#include "spinney/common/dispatch.h"
#include "spinney/common/random.h"
#include "spinney/table/radix_sort.h"
#include "spinney/tree/feature_draw.h"
#include "spinney/tree/search.h"

namespace spinney {
namespace {

// Below this many entries a comparison sort beats the radix sort's set-up.
constexpr Row radix_from = 400;

// Columns that are looked at together; unused lanes repeat the first.
struct Batch {
  std::size_t feature[n_lanes];
  std::size_t n = 0;
};

template <class T>
SPINNEY_INLINE void gather_keys(const T* codes, std::size_t stride, const Row* rows, Row n,
                                const Batch& batch, LaneKeys* keys) {
  for (Row i = 0; i < n; ++i) {
    const T* const row = codes + static_cast<std::size_t>(rows[i]) * stride;
    for (std::size_t l = 0; l < n_lanes; ++l) {
      keys[i].lane[l] = (static_cast<std::uint32_t>(row[batch.feature[l]]) << lane_position_bits) |
                        static_cast<std::uint32_t>(i);
    }
  }
}

// Gathers the codes of the lanes and finds their range.
template <class T>
SPINNEY_INLINE void gather_codes(const T* codes, std::size_t stride, const Row* rows, Row n,
                                 const Batch& batch, LaneKeys* out, LaneKeys& low, LaneKeys& high) {
  LaneKeys least;
  LaneKeys most;
  for (std::size_t l = 0; l < n_lanes; ++l) {
    least.lane[l] = std::numeric_limits<std::uint32_t>::max();
    most.lane[l] = 0;
  }
  for (Row i = 0; i < n; ++i) {
    const T* const row = codes + static_cast<std::size_t>(rows[i]) * stride;
    for (std::size_t l = 0; l < n_lanes; ++l) {
      const auto code = static_cast<std::uint32_t>(row[batch.feature[l]]);
      out[i].lane[l] = code;
      least.lane[l] = code < least.lane[l] ? code : least.lane[l];
      most.lane[l] = code > most.lane[l] ? code : most.lane[l];
    }
  }
  low = least;
  high = most;
}

#define SPINNEY_FOR_CODES(T)                                                                      \
  SPINNEY_KERNEL void gather_sorted(const T* codes, std::size_t stride, const Row* rows, Row n,   \
                                    const Batch& batch, LaneKeys* keys) {                         \
    gather_keys(codes, stride, rows, n, batch, keys);                                             \
    sort_lanes(keys, n);                                                                          \
  }                                                                                               \
  SPINNEY_KERNEL void gather_range(const T* codes, std::size_t stride, const Row* rows, Row n,    \
                                   const Batch& batch, LaneKeys* out, LaneKeys& low,              \
                                   LaneKeys& high) {                                              \
    gather_codes(codes, stride, rows, n, batch, out, low, high);                                  \
  }
SPINNEY_FOR_CODES(std::uint8_t)
SPINNEY_FOR_CODES(std::uint16_t)
SPINNEY_FOR_CODES(std::uint32_t)
#undef SPINNEY_FOR_CODES

// cells = (codes − low) >> shift.
SPINNEY_KERNEL void cut_cells(const LaneKeys* codes, Row n, const LaneKeys& low,
                              const LaneKeys& shift, LaneCells* cells) {
  for (Row i = 0; i < n; ++i) {
    for (std::size_t l = 0; l < n_lanes; ++l) {
      cells[i].lane[l] =
          static_cast<std::uint8_t>((codes[i].lane[l] - low.lane[l]) >> shift.lane[l]);
    }
  }
}

class SampledSearch final : public Search {
 public:
  SampledSearch(SearchInputs inputs, const PreparedTable& prepared)
      : in_(std::move(inputs)), codes_(prepared.codes) {
    n_drawn_ = in_.n_features_drawn();
  }

  std::vector<Row>& rows() override { return in_.rows; }
  void open(Node&) override {}

  void find(Node& node, Worker& worker, int, Split& best) override {
    if (worker.features.empty()) worker.features = in_.features();
    in_.criterion.prepare(in_.rows.data() + node.begin, node.n_rows(), worker.node_scratch);
    const NodeView view = node.view();
    const bool small = node.n_rows() <= max_lane_rows && codes_.max_codes() <= max_lane_codes;
    const bool lanes = in_.options.min_weight_leaf <= 0 && in_.options.monotonic.empty() &&
                       in_.criterion.has_lanes(view);
    if (small && lanes) {
      in_.criterion.load_lanes(in_.rows.data() + node.begin, node.n_rows(), worker.lane_rows);
    }
    const double perfect = in_.criterion.perfect_score(view);
    FeatureDraw draw(worker.features, worker.swaps,
                     Stream(in_.options.seed, Purpose::features, node.key));
    bool any_varies = false;
    Batch batch;
    // Constant columns count among those drawn, but at least one must not be constant.
    for (std::size_t n_drawn = 0; draw.has_next() && (n_drawn < n_drawn_ || !any_varies);) {
      const bool beyond = n_drawn >= n_drawn_;  // looking for one that varies, no more
      const std::size_t wanted = beyond ? n_lanes : std::min(n_lanes, n_drawn_ - n_drawn);
      batch.n = 0;
      while (batch.n < wanted && draw.has_next()) {
        batch.feature[batch.n++] = static_cast<std::size_t>(draw.next());
      }
      for (std::size_t l = batch.n; l < n_lanes; ++l) batch.feature[l] = batch.feature[0];
      n_drawn += batch.n;
      bool varies = false;
      if (small) {
        varies = try_sorted(node, batch, lanes, beyond, worker, best);
      } else if (lanes && in_.options.coarse) {
        varies = try_cells(node, batch, beyond, worker, best);
      } else {
        for (std::size_t l = 0; l < batch.n && !(beyond && varies); ++l) {
          varies |= try_column(node, batch.feature[l], worker, best);
        }
      }
      any_varies |= varies;
      if (best.score >= perfect) return;
    }
  }

  void divide_rows(const Node& node, const Split& split, Worker& worker) override {
    Row* const rows = in_.rows.data() + node.begin;
    const Row n = node.n_rows();
    if (worker.rows.size() < n) worker.rows.resize(n);
    Row* const spare = worker.rows.data();
    const auto feature = static_cast<std::size_t>(split.feature);
    Row n_left = 0;
    Row n_right = 0;
    const auto move = [&](Row i, bool goes_left) {
      const Row row = rows[i];
      const Row left = goes_left ? 1 : 0;
      rows[n_left] = row;
      spare[n_right] = row;
      n_left += left;
      n_right += 1 - left;
    };
    codes_.visit([&](const auto* codes) {
      const auto* column = codes + feature;
      const std::size_t stride = codes_.n_features();
      if (split.categorical) {
        for (Row i = 0; i < n; ++i) {
          const auto code = static_cast<Code>(column[rows[i] * stride]);
          move(i, std::binary_search(split.left_codes.begin(), split.left_codes.end(), code));
        }
      } else {
        const Code missing = codes_.column(feature).missing_code;
        const bool missing_left = split.missing_left;
        const Code limit = split.left_code;
        for (Row i = 0; i < n; ++i) {
          const auto code = static_cast<Code>(column[rows[i] * stride]);
          move(i, (code <= limit) | ((code == missing) & missing_left));
        }
      }
    });
    std::copy(spare, spare + n_right, rows + n_left);
  }

  void divide_columns(const Node&, Node&, Node&, Worker&, int) override {}

  double threshold(const Split& split) const override {
    if (split.categorical) return std::numeric_limits<double>::quiet_NaN();
    if (split.only_missing_right) return std::numeric_limits<double>::infinity();
    const Column& column = in_.table.columns[static_cast<std::size_t>(split.feature)];
    const double below = column.value(split.below);
    const double above = column.value(split.above);
    const double middle = midpoint(below, above);
    return in_.options.narrow_thresholds ? narrowed(middle, below, above) : middle;
  }

  double cost(const Node& node) const override {
    return 10.0 * static_cast<double>(node.n_rows()) * static_cast<double>(n_drawn_);
  }

 private:
  ScanRequest request(const Node& node, std::size_t feature) const {
    ScanRequest request;
    request.node = node.view();
    request.column = &codes_.column(feature);
    request.feature = static_cast<std::int32_t>(feature);
    request.monotonic = in_.options.monotonic.empty() ? 0 : in_.options.monotonic[feature];
    request.limits = {static_cast<Row>(in_.options.min_samples_leaf), in_.options.min_weight_leaf};
    return request;
  }

  Row margin() const {
    return static_cast<Row>(std::max<std::int64_t>(1, in_.options.min_samples_leaf));
  }
  Entry entry(Code code, Row row) const {
    const bool labelled = in_.layout.label_bits > 0;
    return in_.layout.pack(code, row, labelled ? in_.targets.labels[row] : 0);
  }
  // Categories, and columns with missing values in the node, have scans of their own.
  bool is_plain(std::size_t feature, Code highest) const {
    const CodedColumn& column = codes_.column(feature);
    return !column.categorical && !(column.has_missing && highest == column.missing_code);
  }

  // A small node: sorts the lanes, and scans them together where that serves. Returns whether any
  // column varies; `only_first` leaves out what comes after the first that does.
  bool try_sorted(const Node& node, const Batch& batch, bool lanes, bool only_first, Worker& worker,
                  Split& best) const {
    const Row n = node.n_rows();
    const Row* rows = in_.rows.data() + node.begin;
    worker.lanes.resize(max_lane_rows);
    LaneKeys* const keys = worker.lanes.data();
    codes_.visit([&](const auto* codes) {
      gather_sorted(codes, codes_.n_features(), rows, n, batch, keys);
    });
    LaneBest found;
    found.clear();
    if (lanes) in_.criterion.scan_lanes(node.view(), margin(), keys, n, worker.lane_rows, found);
    bool varies = false;
    for (std::size_t l = 0; l < batch.n; ++l) {
      const std::size_t feature = batch.feature[l];
      const Code low = keys[0].lane[l] >> lane_position_bits;
      const Code high = keys[n - 1].lane[l] >> lane_position_bits;
      if (low == high) continue;
      varies = true;
      if (lanes && is_plain(feature, high)) {
        if (found.at[l] != LaneBest::none && found.score[l] > best.score) {
          const Row at = found.at[l];
          const auto row_at = [&](Row i) { return rows[keys[i].lane[l] & (max_lane_rows - 1)]; };
          best.clear();
          best.score = found.score[l];
          best.feature = static_cast<std::int32_t>(feature);
          best.n_left = at + 1;
          best.missing_left = best.n_left > n - best.n_left;
          best.only_missing_right = false;
          best.left_code = keys[at].lane[l] >> lane_position_bits;
          best.below = row_at(at);
          best.above = row_at(at + 1);
        }
      } else {
        worker.entries.resize(n);
        for (Row i = 0; i < n; ++i) {
          const std::uint32_t key = keys[i].lane[l];
          worker.entries[i] = entry(key >> lane_position_bits, rows[key & (max_lane_rows - 1)]);
        }
        scan(node, feature, worker.entries.data(), n, worker, best);
      }
      if (only_first) break;
    }
    return varies;
  }

  // A large node: counts the lanes in cells, then looks inside the two cells beside the best cut.
  bool try_cells(const Node& node, const Batch& batch, bool only_first, Worker& worker,
                 Split& best) const {
    const Row n = node.n_rows();
    const Row* rows = in_.rows.data() + node.begin;
    if (worker.lanes.size() < n) worker.lanes.resize(n);
    if (worker.cells.size() < n) worker.cells.resize(n);
    LaneKeys* const codes = worker.lanes.data();
    LaneKeys low;
    LaneKeys high;
    codes_.visit([&](const auto* matrix) {
      gather_range(matrix, codes_.n_features(), rows, n, batch, codes, low, high);
    });
    const std::size_t n_cells = in_.criterion.n_cells();
    LaneKeys shift;
    for (std::size_t l = 0; l < n_lanes; ++l) {
      shift.lane[l] = 0;
      while (((high.lane[l] - low.lane[l]) >> shift.lane[l]) >= n_cells) ++shift.lane[l];
    }
    cut_cells(codes, n, low, shift, worker.cells.data());
    LaneBest found;
    found.clear();
    in_.criterion.scan_cells(node.view(), margin(), worker.cells.data(), rows, n, worker.scans[0],
                             found);
    bool varies = false;
    std::size_t chosen = n_lanes;
    for (std::size_t l = 0; l < batch.n; ++l) {
      if (low.lane[l] == high.lane[l]) continue;
      varies = true;
      if (!is_plain(batch.feature[l], high.lane[l])) {
        try_column(node, batch.feature[l], worker, best);
      } else if (found.at[l] != LaneBest::none &&
                 (chosen == n_lanes || found.score[l] > found.score[chosen])) {
        chosen = l;
      }
      if (only_first) break;
    }
    if (chosen != n_lanes && found.score[chosen] > best.score) {
      refine(node, batch.feature[chosen], chosen, found.at[chosen], worker, best);
    }
    return varies;
  }

  // The cut lies between cells `at` and the next one that has rows: scans the values of both.
  void refine(const Node& node, std::size_t feature, std::size_t lane, std::uint32_t at,
              Worker& worker, Split& best) const {
    const Row n = node.n_rows();
    const Row* rows = in_.rows.data() + node.begin;
    std::uint32_t next = std::numeric_limits<std::uint32_t>::max();
    for (Row i = 0; i < n; ++i) {
      const std::uint32_t cell = worker.cells[i].lane[lane];
      next = cell > at && cell < next ? cell : next;
    }
    if (worker.rows.size() < n) worker.rows.resize(n);
    worker.entries.resize(n);
    Row n_before = 0;
    std::size_t n_inside = 0;
    for (Row i = 0; i < n; ++i) {
      const std::uint32_t cell = worker.cells[i].lane[lane];
      worker.rows[n_before] = rows[i];
      n_before += cell < at ? 1 : 0;
      worker.entries[n_inside] = entry(worker.lanes[i].lane[lane], rows[i]);
      n_inside += cell == at || cell == next ? 1 : 0;
    }
    const Entry* inside = sort(worker, n_inside, code_bits(feature));
    worker.left_stat.resize(in_.criterion.stat_size());
    in_.criterion.sum(worker.rows.data(), n_before, worker.left_stat.data());
    ScanRequest part = request(node, feature);
    part.entries = inside;
    part.n_entries = static_cast<Row>(n_inside);
    part.before = worker.left_stat.data();
    part.n_before = n_before;
    in_.criterion.scan(part, worker.node_scratch, worker.scans[0], best);
  }

  int code_bits(std::size_t feature) const { return bits_of(codes_.column(feature).missing_code); }

  // Sorts worker.entries[0 … n) by code; n_bits hold the codes.
  const Entry* sort(Worker& worker, std::size_t n, int n_bits) const {
    if (n < radix_from) {
      std::sort(worker.entries.begin(), worker.entries.begin() + static_cast<std::ptrdiff_t>(n));
      return worker.entries.data();
    }
    worker.swap.resize(n);
    const int shift = in_.layout.code_shift();
    return radix_sort(worker.entries.data(), worker.swap.data(), n, shift, shift + n_bits);
  }

  void scan(const Node& node, std::size_t feature, const Entry* sorted, Row n, Worker& worker,
            Split& best) const {
    ScanRequest column = request(node, feature);
    column.entries = sorted;
    column.n_entries = n;
    in_.criterion.scan(column, worker.node_scratch, worker.scans[0], best);
  }

  // One column on its own; returns whether it varies in the node.
  bool try_column(const Node& node, std::size_t feature, Worker& worker, Split& best) const {
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
    if (low == high) return false;
    scan(node, feature, sort(worker, n, bits_of(high)), n, worker, best);
    return true;
  }

  SearchInputs in_;
  const CodeMatrix& codes_;
  std::size_t n_drawn_ = 0;
};

}  // namespace

std::unique_ptr<Search> make_sampled_search(SearchInputs inputs, const PreparedTable& prepared) {
  return std::make_unique<SampledSearch>(std::move(inputs), prepared);
}

}  // namespace spinney
