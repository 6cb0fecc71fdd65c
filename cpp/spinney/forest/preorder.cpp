#include "spinney/forest/preorder.h"

#include <vector>

namespace spinney::forest {

void number_children(std::span<const std::uint8_t> leaf_bits, std::int32_t* children) {
  std::vector<std::size_t> open;  // nodes whose right children come after their left subtrees
  std::int32_t n_leaves = 0;
  for (std::size_t at = 0; at < leaf_bits.size(); ++at) {
    const auto next = static_cast<std::int32_t>(at + 1);
    open.push_back(at);
    if ((leaf_bits[at] & left_is_leaf) == 0) {
      children[2 * at] = next;
      continue;
    }
    children[2 * at] = ~n_leaves++;
    while (!open.empty()) {
      const std::size_t node = open.back();
      open.pop_back();
      const bool is_leaf = (leaf_bits[node] & right_is_leaf) != 0;
      children[2 * node + 1] = is_leaf ? ~n_leaves++ : next;
      if (!is_leaf) break;
    }
  }
  for (const std::size_t node : open) children[2 * node + 1] = 0;
}

}  // namespace spinney::forest
