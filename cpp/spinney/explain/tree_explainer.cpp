#include "spinney/explain/tree_explainer.h"

#include <algorithm>
#include <bit>

#include "spinney/common/check.h"
#include "spinney/common/parallel.h"
#include "spinney/common/simd.h"
#include "spinney/explain/pair_walk.h"
#include "spinney/explain/pattern_tables.h"
#include "spinney/explain/row_walk.h"
#include "spinney/explain/share_walk.h"
#include "spinney/forest/check_tree.h"

namespace spinney::explain {

using common::parallel_for;

namespace {

constexpr std::size_t n_lanes = common::lane_count<common::Doubles8>;  // of add_rows

constexpr std::size_t chunk_rows = 16384;  // rows that share the tables made for them
constexpr std::size_t most_block_rows = 1024;
constexpr std::size_t block_bytes = std::size_t{1} << 19;  // of explanations
constexpr std::size_t batch_bytes = std::size_t{1} << 26;  // of tables
constexpr std::size_t most_batch = 64;                     // trees
constexpr std::size_t first_batch = 8;
constexpr std::size_t few_rows = 48;     // with fewer rows, tables do not pay
constexpr std::size_t single_rows = 10;  // with fewer rows, rows are explained one by one
constexpr std::size_t side_bytes = std::size_t{1} << 26;  // of the background, for one tree
constexpr std::size_t few_rows_parts = 32;                // of the trees, for any number of threads

std::size_t whole_log2(std::size_t n) {
  return n == 0 ? 0 : static_cast<std::size_t>(std::bit_width(n) - 1);
}

// Tables pay where rows are many. Larger ones do not stay in the cache, and a background makes the
// walk, the other way, as many times more expensive as it has rows.
TableLimits limits_for(std::size_t n_rows, std::size_t n_background, const OutputLayout& layout) {
  TableLimits limits;
  const std::size_t extra = (layout.interactions ? 2 : 0) + whole_log2(layout.n_outputs) / 2;
  const std::size_t bits = whole_log2(n_rows);
  limits.merged =
      std::clamp<std::size_t>(bits > 3 ? bits - 3 : 0, 2, 9 - std::min<std::size_t>(extra, 4));
  limits.leaf = limits.merged;
  if (n_background > 0) {
    limits.leaf = std::clamp<std::size_t>(bits + whole_log2(n_background), 2, 12);
  }
  return limits;
}

struct Planned {
  TreePlan tables;
  SharePlan walk;
};

void require(bool holds) {
  if (!holds) throw common::InputError("the arrays of a tree do not fit together");
}

}  // namespace

TreeExplainer::TreeExplainer(std::vector<std::int32_t> n_categories, std::size_t n_outputs)
    : n_categories_(std::move(n_categories)), n_outputs_(n_outputs) {
  require(n_outputs_ > 0);
  slot_.assign(n_categories_.size(), -1);
}

void TreeExplainer::append(GameTree&& tree) {
  const std::size_t n = tree.size();
  forest::check_tree<std::int32_t>({tree.left, tree.right, tree.feature, tree.threshold,
                                    tree.missing_left, tree.category_start, tree.category_bits},
                                   n_categories_);
  require(tree.share_left.size() == n && tree.width > 0 && tree.value.size() == n * tree.width &&
          tree.output + tree.width <= n_outputs_);
  for (std::size_t node = 0; node < n; ++node) {
    if (tree.is_leaf(node)) continue;
    const std::int32_t feature = tree.feature[node];
    require(tree.share_left[node] >= 0 && tree.share_left[node] <= 1);
    const std::int32_t n_categories = n_categories_[static_cast<std::size_t>(feature)];
    require((tree.category_start[node] == forest::no_categories) == (n_categories == 0));
    std::int32_t& slot = slot_[static_cast<std::size_t>(feature)];
    if (slot < 0) slot = static_cast<std::int32_t>(n_slots_++);
  }
  trees_.push_back(std::move(tree));
}

void TreeExplainer::check_table(const table::Table& table) const {
  if (table.n_features() != n_features()) {
    throw common::InputError("X has another number of columns than the trees know");
  }
  for (std::size_t f = 0; f < n_features(); ++f) {
    const table::Column& column = table.columns[f];
    const bool categorical = column.kind == table::ColumnKind::categorical;
    if (categorical != (n_categories_[f] > 0) ||
        (categorical && column.n_categories > n_categories_[f])) {
      if (slot_[f] >= 0) throw common::InputError("X has other categories than the trees know");
    }
  }
}

void TreeExplainer::set_background(const table::Table& table) {
  check_table(table);
  if (table.n_rows == 0) throw common::InputError("background: expected at least one row");
  read_rows(table, 0, table.n_rows, slot_, n_slots_, background_);
}

void TreeExplainer::base_values(double* out) const {
  std::fill(out, out + n_outputs_, 0.0);
  std::vector<double> cover;
  for (const GameTree& tree : trees_) {
    cover.assign(tree.size(), 0.0);
    cover[0] = 1;
    for (std::size_t row = 0; row < background_.n; ++row) {
      std::size_t node = 0;
      while (!tree.is_leaf(node)) {
        const bool left = tree.goes_left(node, background_.of(tree.feature[node])[row]);
        node = static_cast<std::size_t>(left ? tree.left[node] : tree.right[node]);
      }
      if (node > 0) cover[node] += 1.0 / static_cast<double>(background_.n);
    }
    for (std::size_t node = 0; node < tree.size(); ++node) {
      if (tree.is_leaf(node)) {
        for (std::size_t w = 0; w < tree.width; ++w) {
          out[tree.output + w] += cover[node] * tree.value[node * tree.width + w];
        }
      } else if (background_.n == 0) {
        cover[static_cast<std::size_t>(tree.left[node])] = cover[node] * tree.share_left[node];
        cover[static_cast<std::size_t>(tree.right[node])] =
            cover[node] * (1 - tree.share_left[node]);
      }
    }
  }
}

void TreeExplainer::explain(const table::Table& table, bool interactions, int n_threads,
                            double* out, common::Watch& watch) const {
  check_table(table);
  std::size_t most_nodes = 1;
  for (const GameTree& tree : trees_) most_nodes = std::max(most_nodes, tree.size());
  // The background's sides at every node are stored while a tree is planned: part by part, if
  // there are many rows. Values are means over them.
  const std::size_t at_once = std::max<std::size_t>(side_bytes / most_nodes, 1);
  if (background_.n <= at_once) {
    explain_with(background_.n > 0 ? &background_ : nullptr, table, interactions, n_threads, out,
                 watch);
    return;
  }
  for (std::size_t first = 0; first < background_.n; first += at_once) {
    const RowValues part = take_rows(background_, first, std::min(at_once, background_.n - first));
    explain_with(&part, table, interactions, n_threads, out, watch);
  }
}

void TreeExplainer::explain_with(const RowValues* background, const table::Table& table,
                                 bool interactions, int n_threads, double* out,
                                 common::Watch& watch) const {
  const OutputLayout layout{n_features(), n_outputs_, interactions};
  const std::size_t per_row = layout.per_row();
  const std::size_t block_rows = std::clamp<std::size_t>(
      block_bytes / (8 * std::max<std::size_t>(per_row, 1)) / 16 * 16, 64, most_block_rows);
  if (background == nullptr && !interactions && table.n_rows <= few_rows &&
      explain_few(table, n_threads, out, watch)) {
    return;
  }
  std::vector<TableScratch> table_scratch(static_cast<std::size_t>(n_threads));
  std::vector<WalkScratch> walk_scratch(static_cast<std::size_t>(n_threads));
  for (std::size_t first = 0; first < table.n_rows; first += chunk_rows) {
    const std::size_t n_rows = std::min(chunk_rows, table.n_rows - first);
    const TableLimits limits =
        limits_for(n_rows, background == nullptr ? 0 : background->n, layout);
    // Small jobs in blocks that leave something to every thread.
    const std::size_t threads = static_cast<std::size_t>(n_threads);
    const std::size_t fair = (n_rows + 4 * threads - 1) / (4 * threads);
    const std::size_t size = std::clamp<std::size_t>((fair + 15) / 16 * 16, 16, block_rows);
    const std::size_t n_blocks = (n_rows + size - 1) / size;
    std::vector<RowValues> blocks(n_blocks);
    parallel_for(n_blocks, n_threads, [&](std::size_t block, int) {
      const std::size_t at = block * size;
      read_rows(table, first + at, std::min(size, n_rows - at), slot_, n_slots_, blocks[block]);
    });
    std::size_t begin = 0;
    std::size_t n_batch = std::min<std::size_t>(2 * threads, first_batch);
    while (begin < trees_.size()) {
      const std::size_t end = std::min(trees_.size(), begin + n_batch);
      std::vector<Planned> plans(end - begin);
      parallel_for(plans.size(), n_threads, [&](std::size_t i, int) {
        const GameTree& tree = trees_[begin + i];
        plans[i].tables = plan_tree(tree, limits, background, layout);
        if (background == nullptr) plan_walk(tree, &plans[i].tables, plans[i].walk);
        watch.poll(100'000);
      });
      parallel_for(n_blocks, n_threads, [&](std::size_t block, int worker) {
        double* const to = out + (first + block * size) * per_row;
        for (std::size_t i = 0; i < plans.size(); ++i) {
          const GameTree& tree = trees_[begin + i];
          const auto thread = static_cast<std::size_t>(worker);
          add_tables(tree, plans[i].tables, blocks[block], table_scratch[thread], per_row, to);
          if (background == nullptr) {
            add_walk(tree, plans[i].walk, blocks[block], layout, walk_scratch[thread], to);
          } else {
            add_pairs(tree, plans[i].tables, blocks[block], *background, layout, to);
          }
          watch.poll(100'000);
        }
      });
      watch.advance((end - begin) * n_rows);
      // As many trees next as have tables of some size together.
      std::size_t bytes = 1;
      for (const Planned& plan : plans) {
        for (const PatternTable& part : plan.tables.tables) bytes += 8 * part.table.size();
        bytes += 8 * plan.walk.constants.size();
      }
      n_batch = std::clamp<std::size_t>(batch_bytes / (bytes / plans.size() + 1), 1, most_batch);
      begin = end;
    }
  }
}

bool TreeExplainer::explain_few(const table::Table& table, int n_threads, double* out,
                                common::Watch& watch) const {
  std::vector<PathSizes> paths;
  for (const GameTree& tree : trees_) {
    paths.push_back(measure_paths(tree, n_features()));
    if (!Quadratures::serves(paths.back().n_conditions)) return false;
  }
  const Quadratures quadratures;
  RowValues rows;
  read_rows(table, 0, table.n_rows, slot_, n_slots_, rows);
  const std::size_t n_parts = std::min(few_rows_parts, trees_.size());
  const std::size_t per_part = rows.n * n_slots_ * n_outputs_;
  std::vector<double> sums(n_parts * per_part);  // [part][row][slot][output]
  std::vector<RowWalkScratch> scratch(static_cast<std::size_t>(n_threads));
  std::vector<WalkScratch> walk_scratch(static_cast<std::size_t>(n_threads));
  std::vector<SharePlan> plans(static_cast<std::size_t>(n_threads));
  const OutputLayout slots{n_slots_, n_outputs_, false};
  parallel_for(n_parts, n_threads, [&](std::size_t part, int worker) {
    const auto thread = static_cast<std::size_t>(worker);
    const std::size_t end = (part + 1) * trees_.size() / n_parts;
    if (rows.n > single_rows) {
      for (std::size_t i = part * trees_.size() / n_parts; i < end; ++i) {
        plan_walk(trees_[i], nullptr, plans[thread]);
        for (std::int32_t& f : plans[thread].features) f = slot_[static_cast<std::size_t>(f)];
        add_walk(trees_[i], plans[thread], rows, slots, walk_scratch[thread],
                 sums.data() + part * per_part);
        watch.poll(100'000);
      }
      return;
    }
    std::vector<double> lanes(per_part * n_lanes);
    for (std::size_t i = part * trees_.size() / n_parts; i < end; ++i) {
      add_rows(trees_[i], paths[i], quadratures, rows, n_slots_, n_outputs_, scratch[thread],
               lanes.data());
      watch.poll(100'000);
    }
    for (std::size_t i = 0; i < per_part; ++i) {
      sums[part * per_part + i] = common::sum_eight(lanes.data() + i * n_lanes);
    }
  });
  for (std::size_t part = 0; part < n_parts; ++part) {
    for (std::size_t row = 0; row < rows.n; ++row) {
      for (std::size_t f = 0; f < n_features(); ++f) {
        if (slot_[f] < 0) continue;
        const auto slot = static_cast<std::size_t>(slot_[f]);
        for (std::size_t o = 0; o < n_outputs_; ++o) {
          out[(row * n_features() + f) * n_outputs_ + o] +=
              sums[part * per_part + (row * n_slots_ + slot) * n_outputs_ + o];
        }
      }
    }
  }
  watch.advance(trees_.size() * rows.n);
  return true;
}

}  // namespace spinney::explain
