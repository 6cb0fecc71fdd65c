#include "spinney/tree/prune.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace spinney::tree {

PruningPath weakest_links(std::span<const std::int64_t> left, std::span<const std::int64_t> right,
                          std::span<const double> risk) {
  const std::size_t n = left.size();
  std::vector<std::size_t> parent(n, n);
  std::vector<std::size_t> preorder;
  preorder.reserve(n);
  std::vector<std::size_t> stack{0};
  while (!stack.empty()) {
    const std::size_t node = stack.back();
    stack.pop_back();
    preorder.push_back(node);
    if (left[node] < 0) continue;
    for (const std::int64_t child : {right[node], left[node]}) {
      parent[static_cast<std::size_t>(child)] = node;
      stack.push_back(static_cast<std::size_t>(child));
    }
  }
  std::vector<double> branch_risk(risk.begin(), risk.end());
  std::vector<std::int64_t> n_leaves(n, 1);
  for (auto at = preorder.rbegin(); at != preorder.rend(); ++at) {
    if (left[*at] < 0) continue;
    const auto l = static_cast<std::size_t>(left[*at]);
    const auto r = static_cast<std::size_t>(right[*at]);
    branch_risk[*at] = branch_risk[l] + branch_risk[r];
    n_leaves[*at] = n_leaves[l] + n_leaves[r];
  }
  const auto link = [&](std::size_t node) {
    return (risk[node] - branch_risk[node]) / static_cast<double>(n_leaves[node] - 1);
  };
  std::set<std::pair<double, std::size_t>>
      links;  // of equal links the smaller index is pruned first
  std::vector<double> current(n, std::numeric_limits<double>::infinity());
  for (std::size_t node = 0; node < n; ++node) {
    if (left[node] < 0) continue;
    current[node] = link(node);
    links.emplace(current[node], node);
  }

  PruningPath path;
  path.node_alpha.assign(n, std::numeric_limits<double>::infinity());
  path.alphas.push_back(0);
  path.risks.push_back(branch_risk[0]);
  double reached = 0;  // rounding must not make the sequence decrease
  while (!links.empty()) {
    const auto [alpha, node] = *links.begin();
    reached = std::max(reached, alpha);
    // Prunes all descendants with the node.
    stack.assign(1, node);
    while (!stack.empty()) {
      const std::size_t below = stack.back();
      stack.pop_back();
      if (left[below] < 0) continue;
      if (links.erase({current[below], below}) == 0) continue;
      path.node_alpha[below] = reached;
      stack.push_back(static_cast<std::size_t>(left[below]));
      stack.push_back(static_cast<std::size_t>(right[below]));
    }
    const double added_risk = risk[node] - branch_risk[node];
    const std::int64_t lost_leaves = n_leaves[node] - 1;
    branch_risk[node] = risk[node];
    n_leaves[node] = 1;
    for (std::size_t up = parent[node]; up < n; up = parent[up]) {
      links.erase({current[up], up});
      branch_risk[up] += added_risk;
      n_leaves[up] -= lost_leaves;
      current[up] = link(up);
      links.emplace(current[up], up);
    }
    path.alphas.push_back(reached);
    path.risks.push_back(branch_risk[0]);
  }
  return path;
}

}  // namespace spinney::tree
