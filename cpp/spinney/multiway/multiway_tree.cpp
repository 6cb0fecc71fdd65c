#include "spinney/multiway/multiway_tree.h"

#include <algorithm>
#include <cmath>

#include "spinney/common/parallel.h"

namespace spinney::multiway {

using common::parallel_for;
using common::worthwhile_threads;

namespace {

// The branch of a row; −1 if there is none.
std::int32_t branch_of(const MultiwayTree& tree, const MultiwayNode& node,
                       const table::Column& column, std::size_t row) {
  if (node.branch_of.empty()) {
    const double value = column.value(row);
    if (std::isnan(value)) return -1;
    return value <= node.threshold ? 0 : 1;
  }
  std::int32_t code = column.category(row);
  if (code < 0 && tree.missing_is_category) code = column.n_categories;
  const auto n_codes = static_cast<std::int32_t>(node.branch_of.size());
  return code < 0 || code >= n_codes ? -1 : node.branch_of[static_cast<std::size_t>(code)];
}

}  // namespace

void MultiwayTree::tidy() {
  std::vector<MultiwayNode> kept;
  struct Visit {
    std::size_t node;
    std::size_t parent;
    std::size_t branch;
  };
  constexpr auto none = static_cast<std::size_t>(-1);
  std::vector<Visit> stack{{0, none, 0}};
  while (!stack.empty()) {
    const Visit visit = stack.back();
    stack.pop_back();
    const std::size_t at = kept.size();
    kept.push_back(std::move(nodes[visit.node]));
    MultiwayNode& node = kept.back();
    if (visit.parent != none) {
      kept[visit.parent].children[visit.branch] = static_cast<common::NodeIndex>(at);
    }
    if (node.weight > 0) {
      node.fractions = node.counts;
      for (double& fraction : node.fractions) fraction /= node.weight;
    } else {
      node.fractions = kept[visit.parent].fractions;
    }
    for (std::size_t branch = node.children.size(); branch-- > 0;) {
      stack.push_back({static_cast<std::size_t>(node.children[branch]), at, branch});
    }
  }
  nodes = std::move(kept);
}

void predict(const MultiwayTree& tree, const table::Table& table, int n_threads, double* out) {
  constexpr std::size_t block = 1024;
  const std::size_t n_blocks = (table.n_rows + block - 1) / block;
  const double work = 200.0 * static_cast<double>(table.n_rows);
  parallel_for(n_blocks, worthwhile_threads(work, n_threads), [&](std::size_t block_index, int) {
    struct Visit {
      std::size_t node;
      double weight;
    };
    std::vector<Visit> stack;
    const std::size_t end = std::min(table.n_rows, (block_index + 1) * block);
    for (std::size_t row = block_index * block; row < end; ++row) {
      double* const to = out + row * tree.n_classes;
      std::fill(to, to + tree.n_classes, 0.0);
      stack.assign(1, {0, 1.0});
      while (!stack.empty()) {
        const Visit visit = stack.back();
        stack.pop_back();
        const MultiwayNode& node = tree.nodes[visit.node];
        std::int32_t branch = -1;
        if (!node.is_leaf()) {
          const table::Column& column = table.columns[static_cast<std::size_t>(node.feature)];
          branch = branch_of(tree, node, column, row);
        }
        if (branch >= 0) {
          const common::NodeIndex child = node.children[static_cast<std::size_t>(branch)];
          stack.push_back({static_cast<std::size_t>(child), visit.weight});
        } else if (node.is_leaf() || tree.missing_is_category) {
          for (std::size_t k = 0; k < tree.n_classes; ++k) {
            to[k] += visit.weight * node.fractions[k];
          }
        } else {
          for (std::size_t b = 0; b < node.children.size(); ++b) {
            if (node.shares[b] == 0) continue;
            stack.push_back(
                {static_cast<std::size_t>(node.children[b]), visit.weight * node.shares[b]});
          }
        }
      }
    }
  });
}

}  // namespace spinney::multiway
