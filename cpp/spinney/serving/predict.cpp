#include "spinney/serving/predict.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "spinney/common/check.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"
#include "spinney/forest/traversal.h"
#include "spinney/serving/block_traversal.h"
#include "spinney/table/row_block.h"

namespace spinney::serving {

using common::InputError;
using common::parallel_for;
using common::worthwhile_threads;

namespace {

constexpr std::size_t n_lanes = 8;  // rows that descend together, to hide the latency of loads
constexpr std::size_t shallow = 6;  // up to this depth, a search for leaves costs more than steps
constexpr std::size_t block_rows = 1024;        // rows a thread takes at a time
constexpr std::size_t warm_bytes = 256 * 1024;  // of rows brought into the cache at a time

template <class Value>
table::SpecialValues find_special_in_rows(const Value* rows, std::size_t stride, std::size_t width,
                                          std::size_t n) {
  if (stride == width) return table::find_special(rows, n * width);
  table::SpecialValues found;
  for (std::size_t i = 0; i < n; ++i) {
    const table::SpecialValues row = table::find_special(rows + i * stride, width);
    found.infinite |= row.infinite;
    found.missing |= row.missing;
  }
  return found;
}

void check_finite(const table::Column& column, std::size_t first, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (std::isinf(column.value(first + i))) throw InputError("Input X contains infinity");
  }
}

}  // namespace

Predictor::Predictor(const forest::TreeView& tree)
    : bits_(tree.category_bits.begin(), tree.category_bits.end()) {
  forest::check_tree(tree);
  const std::size_t n = tree.left.size();
  parent_.assign(n, -1);
  nodes_.reserve(n + 1);
  original_.reserve(n + 1);
  nodes_.resize(1);
  original_.push_back(0);
  struct Visit {
    std::size_t node;
    std::uint32_t at;
    std::size_t depth;
  };
  std::vector<Visit> stack{{0, 0, 0}};
  std::size_t depth_sum = 0;
  std::size_t n_leaves = 0;
  while (!stack.empty()) {
    const Visit visit = stack.back();
    stack.pop_back();
    if (tree.left[visit.node] < 0) {
      // !(x > inf) holds for every x, also for NaN: a leaf always leads to itself.
      nodes_[visit.at] = {std::numeric_limits<double>::infinity(), missing_left_flag, visit.at};
      depth_sum += visit.depth;
      max_depth_ = std::max(max_depth_, visit.depth);
      ++n_leaves;
      continue;
    }
    const auto left = static_cast<std::size_t>(tree.left[visit.node]);
    const auto right = static_cast<std::size_t>(tree.right[visit.node]);
    parent_[left] = parent_[right] = static_cast<std::int64_t>(visit.node);
    const auto child = static_cast<std::uint32_t>(nodes_.size());
    nodes_.resize(nodes_.size() + 2);
    original_.push_back(static_cast<std::int64_t>(left));
    original_.push_back(static_cast<std::int64_t>(right));
    const auto feature = static_cast<std::int32_t>(tree.feature[visit.node]);
    used_.push_back(feature);
    auto packed = static_cast<std::uint32_t>(feature);
    double threshold = tree.threshold[visit.node];
    if (tree.category_start[visit.node] != forest::no_categories) {
      packed |= categorical_flag;
      has_categories_ = true;
      threshold = std::bit_cast<double>(tree.category_start[visit.node]);
    }
    if (tree.missing_left[visit.node] != 0) packed |= missing_left_flag;
    nodes_[visit.at] = {threshold, packed, child};
    stack.push_back({right, child + 1, visit.depth + 1});
    stack.push_back({left, child, visit.depth + 1});
  }
  std::sort(used_.begin(), used_.end());
  used_.erase(std::unique(used_.begin(), used_.end()), used_.end());
  narrow_nodes_ = nodes_;
  for (PackedNode& node : narrow_nodes_) {
    const auto feature = static_cast<std::int32_t>(node.feature & feature_mask);
    const auto slot = std::lower_bound(used_.begin(), used_.end(), feature) - used_.begin();
    // A leaf reads slot 0 and ignores the value.
    const bool is_leaf = node.child == static_cast<std::uint32_t>(&node - narrow_nodes_.data());
    node.feature =
        (node.feature & ~feature_mask) | (is_leaf ? 0U : static_cast<std::uint32_t>(slot));
  }
  for (const PackedNode& node : nodes_) {
    if ((node.feature & categorical_flag) != 0) {
      categorical_.push_back(static_cast<std::int32_t>(node.feature & feature_mask));
    }
  }
  std::sort(categorical_.begin(), categorical_.end());
  categorical_.erase(std::unique(categorical_.begin(), categorical_.end()), categorical_.end());
  n_bits_.assign(categorical_.size(), 32 * bits_.size());
  for (const PackedNode& node : nodes_) {
    if ((node.feature & categorical_flag) == 0) continue;
    const auto feature = static_cast<std::int32_t>(node.feature & feature_mask);
    const auto slot =
        std::lower_bound(categorical_.begin(), categorical_.end(), feature) - categorical_.begin();
    const auto start = static_cast<std::size_t>(std::bit_cast<std::int64_t>(node.threshold));
    std::size_t& n_bits = n_bits_[static_cast<std::size_t>(slot)];
    n_bits = std::min(n_bits, 32 * (bits_.size() - start));
  }
  mean_depth_ = static_cast<double>(depth_sum) / static_cast<double>(n_leaves);
}

void Predictor::check_columns(const table::Table& table) const {
  if (table.n_features() == 0 ||
      (!used_.empty() && static_cast<std::size_t>(used_.back()) >= table.n_features())) {
    throw InputError("X has fewer columns than the tree has features");
  }
  for (std::size_t i = 0; i < categorical_.size(); ++i) {
    const table::Column& column = table.columns[static_cast<std::size_t>(categorical_[i])];
    if (column.kind != table::ColumnKind::categorical) {
      throw InputError("X has a numeric column where the tree splits on categories");
    }
    if (static_cast<std::size_t>(column.n_categories) > n_bits_[i]) {
      throw InputError("X has more categories than the tree");
    }
  }
}

// Siblings are side by side, and a leaf leads to itself.
template <bool may_miss>
struct Predictor::PackedLayout {
  using Index = std::uint32_t;
  const PackedNode* nodes;

  template <class Value>
  SPINNEY_INLINE Index next(Index at, const Value* row) const {
    const PackedNode node = nodes[at];
    const auto value = static_cast<double>(row[node.feature & feature_mask]);
    return node.child +
           forest::numeric_side<may_miss>(value, node.threshold, ~(node.feature >> 31) & 1U);
  }
  bool is_leaf(Index at, Index next) const { return next == at; }
  std::uint32_t leaf(Index next) const { return next; }
};

template <class Value>
void Predictor::descend(const std::vector<PackedNode>& packed, const Value* rows,
                        std::size_t stride, std::size_t n, bool may_miss, std::uint32_t* at) const {
  if (has_categories_ || n < n_lanes) {
    for (std::size_t i = 0; i < n; ++i) at[i] = descend_row(packed.data(), rows + i * stride);
    return;
  }
  const auto run = [&](const auto& layout) {
    if (max_depth_ <= shallow) {
      descend_by_level(layout, rows, stride, n, max_depth_, at);
    } else {
      descend_in_lanes<n_lanes>(layout, rows, stride, n, at);
    }
  };
  if (may_miss) {
    run(PackedLayout<true>{packed.data()});
  } else {
    run(PackedLayout<false>{packed.data()});
  }
}

template <class Value>
std::uint32_t Predictor::descend_row(const PackedNode* nodes, const Value* row) const {
  for (std::uint32_t at = 0;;) {
    const PackedNode& node = nodes[at];
    const bool is_categorical = (node.feature & categorical_flag) != 0;
    const std::uint32_t* const categories =
        is_categorical ? bits_.data() + std::bit_cast<std::int64_t>(node.threshold) : nullptr;
    const bool left =
        forest::goes_left(static_cast<double>(row[node.feature & feature_mask]), node.threshold,
                          (node.feature & missing_left_flag) != 0, categories);
    const std::uint32_t next = node.child + (left ? 0U : 1U);
    if (next == at) return at;
    at = next;
  }
}

template <class Done>
void Predictor::run(const table::Table& table, int n_threads, const Done& done) const {
  check_columns(table);
  const std::size_t n_rows = table.n_rows;
  const std::size_t n_blocks = (n_rows + block_rows - 1) / block_rows;
  const double work = static_cast<double>(n_rows) * (10 + 4 * mean_depth_);
  n_threads = worthwhile_threads(work, n_threads);
  const std::size_t warm_rows = std::clamp<std::size_t>(
      warm_bytes / (sizeof(double) * std::max<std::size_t>(table.n_features(), 1)), n_lanes,
      block_rows);
  // A C-contiguous matrix is read in place; other tables are copied block by block.
  const std::size_t n_features = table.n_features();
  const table::Column& first_column = table.columns[0];
  const auto item = static_cast<std::ptrdiff_t>(
      first_column.dtype == table::Dtype::float64 ? sizeof(double) : sizeof(float));
  const bool contiguous = table.is_row_major();
  parallel_for(n_blocks, n_threads, [&](std::size_t block, int) {
    const std::size_t first = block * block_rows;
    const std::size_t n = std::min(block_rows, n_rows - first);
    std::array<std::uint32_t, block_rows> at;
    if (contiguous) {
      const std::byte* data =
          first_column.data + static_cast<std::ptrdiff_t>(first) * first_column.stride;
      const auto stride = static_cast<std::size_t>(first_column.stride / item);
      // The search for special values also brings the rows into the cache, in order. The descent
      // reads them in random order and is twice as fast then.
      const auto read = [&](const auto* rows) {
        for (std::size_t i = 0; i < n; i += warm_rows) {
          const std::size_t m = std::min(warm_rows, n - i);
          const auto* warm = rows + i * stride;
          const table::SpecialValues special = find_special_in_rows(warm, stride, n_features, m);
          if (special.infinite && !table.known_finite) {
            throw InputError("Input X contains infinity");
          }
          descend(nodes_, warm, stride, m, special.missing, at.data() + i);
        }
      };
      if (first_column.dtype == table::Dtype::float64) {
        read(reinterpret_cast<const double*>(data));
      } else {
        read(reinterpret_cast<const float*>(data));
      }
    } else {
      if (!table.known_finite) {
        for (const table::Column& column : table.columns) check_finite(column, first, n);
      }
      // Only the columns of splits: a sparse table may have a million others.
      const std::size_t width = std::max<std::size_t>(used_.size(), 1);
      std::vector<double> rows(n * width);
      for (std::size_t slot = 0; slot < used_.size(); ++slot) {
        const table::Column& column = table.columns[static_cast<std::size_t>(used_[slot])];
        double* to = rows.data() + slot;
        for (std::size_t i = 0; i < n; ++i) to[i * width] = column.value(first + i);
      }
      descend(narrow_nodes_, rows.data(), width, n, true, at.data());
    }
    done(first, n, at.data());
  });
}

void Predictor::apply(const table::Table& table, int n_threads, std::int64_t* leaf) const {
  run(table, n_threads, [&](std::size_t first, std::size_t n, const std::uint32_t* at) {
    for (std::size_t i = 0; i < n; ++i) leaf[first + i] = original_[at[i]];
  });
}

void Predictor::predict(const table::Table& table, int n_threads, const double* values,
                        std::size_t width, double* out) const {
  run(table, n_threads, [&](std::size_t first, std::size_t n, const std::uint32_t* at) {
    for (std::size_t i = 0; i < n; ++i) {
      const double* value = values + static_cast<std::size_t>(original_[at[i]]) * width;
      std::copy(value, value + width, out + (first + i) * width);
    }
  });
}

void Predictor::predict_labels(const table::Table& table, int n_threads, const std::int64_t* labels,
                               std::int64_t* out) const {
  run(table, n_threads, [&](std::size_t first, std::size_t n, const std::uint32_t* at) {
    for (std::size_t i = 0; i < n; ++i) out[first + i] = labels[original_[at[i]]];
  });
}

void Predictor::decision_path(const table::Table& table, int n_threads,
                              std::vector<std::int64_t>& indptr,
                              std::vector<std::int64_t>& indices) const {
  std::vector<std::int64_t> leaf(table.n_rows);
  apply(table, n_threads, leaf.data());
  indptr.assign(1, 0);
  for (const std::int64_t node : leaf) {
    const std::size_t begin = indices.size();
    for (std::int64_t at = node; at >= 0; at = parent_[static_cast<std::size_t>(at)]) {
      indices.push_back(at);
    }
    std::reverse(indices.begin() + static_cast<std::ptrdiff_t>(begin), indices.end());
    indptr.push_back(static_cast<std::int64_t>(indices.size()));
  }
}

}  // namespace spinney::serving
