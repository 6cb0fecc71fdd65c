// Cost-complexity (weakest-link) pruning. With R a risk that adds over leaves, the subtree that
// minimises R + alpha·leaves shrinks in steps as alpha grows; each step turns the node with the
// smallest (R(node) − R(branch)) / (leaves − 1) into a leaf.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace spinney::tree {

struct PruningPath {
  std::vector<double> alphas;  // 0, then one for each step
  std::vector<double> risks;   // risk of the subtree at each alpha
  // The alpha from which a node is a leaf or removed; infinity for leaves of the full tree.
  std::vector<double> node_alpha;
};

PruningPath weakest_links(std::span<const std::int64_t> left, std::span<const std::int64_t> right,
                          std::span<const double> risk);

}  // namespace spinney::tree
