#include "spinney/forest/compact_tree.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "spinney/common/check.h"
#include "spinney/common/log.h"

namespace spinney::forest {

namespace {

bool is_float(double x) { return static_cast<double>(static_cast<float>(x)) == x; }

// Up to rounding, as in the grower.
bool is_pure(const Tree& tree, std::size_t node) {
  return tree.n_rows[node] == 1 || tree.impurity[node] <= std::numeric_limits<double>::epsilon();
}

// The nodes of a tree in pre-order.
std::vector<std::size_t> preorder(const Tree& tree) {
  std::vector<std::size_t> order;
  order.reserve(tree.size());
  std::vector<std::size_t> stack{0};
  while (!stack.empty()) {
    const std::size_t node = stack.back();
    stack.pop_back();
    order.push_back(node);
    if (tree.left[node] == no_child) continue;
    stack.push_back(static_cast<std::size_t>(tree.right[node]));
    stack.push_back(static_cast<std::size_t>(tree.left[node]));
  }
  return order;
}

// The class of a pure leaf, or none.
constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
std::uint32_t pure_class(const double* value, std::uint32_t n_classes) {
  for (std::uint32_t k = 0; k < n_classes; ++k) {
    if (value[k] == 1.0) return k;
  }
  return none;
}

void compact_classes(const Tree& tree, const std::vector<std::size_t>& leaves,
                     std::uint32_t n_classes, CompactTree& out) {
  std::vector<double> counts;
  bool all_floats = true;
  std::uint32_t n_mixed = 0;
  for (const std::size_t node : leaves) {
    const double* value = tree.value.data() + node * tree.value_size;
    const std::uint32_t pure = pure_class(value, n_classes);
    if (pure != none) {
      out.leaf_class.push_back(pure);
      continue;
    }
    out.leaf_class.push_back(n_classes + n_mixed++);
    for (std::uint32_t k = 0; k < n_classes; ++k) {
      const double count = std::nearbyint(value[k] * tree.weight[node]);
      counts.push_back(count);
      all_floats &= count / tree.weight[node] == value[k] && is_float(count);
    }
  }
  if (all_floats) {
    out.mixed_counts.append(counts.begin(), counts.end());
    return;
  }
  for (const std::size_t node : leaves) {
    const double* value = tree.value.data() + node * tree.value_size;
    if (pure_class(value, n_classes) != none) continue;
    out.values.append(value, value + n_classes);
  }
}

double y_log_y(double mean) { return mean > 0 ? mean * common::log(mean) : 0.0; }

double class_impurity(const LeafShape& shape, const double* value, std::size_t width) {
  constexpr double log2_e = 1.4426950408889634;
  const std::size_t stride = width / shape.n_outputs;
  double total = 0;
  for (std::size_t o = 0; o < shape.n_outputs; ++o) {
    double squares = 0;
    double entropy = 0;
    double largest = 0;
    for (std::size_t k = 0; k < shape.n_classes[o]; ++k) {
      const double p = value[o * stride + k];
      squares += p * p;
      largest = std::max(largest, p);
      if (p > 0) entropy -= p * common::log(p) * log2_e;
    }
    if (shape.criterion == criterion::CriterionKind::gini) total += 1 - squares;
    if (shape.criterion == criterion::CriterionKind::entropy) total += entropy;
    if (shape.criterion == criterion::CriterionKind::misclassification) total += 1 - largest;
  }
  return total / static_cast<double>(shape.n_outputs);
}

// The impurity of a node from its children's: the impurity within them plus that between them.
double joint_impurity(const LeafShape& shape, const Tree& tree, std::size_t node, std::size_t left,
                      std::size_t right) {
  const std::size_t width = tree.value_size;
  const double* value = tree.value.data() + node * width;
  if (criterion::is_classification(shape.criterion)) return class_impurity(shape, value, width);
  const double of_left = tree.weight[left] / tree.weight[node];
  const double of_right = tree.weight[right] / tree.weight[node];
  const double inside = of_left * tree.impurity[left] + of_right * tree.impurity[right];
  double between = 0;
  for (std::size_t o = 0; o < shape.n_outputs; ++o) {
    const double a = tree.value[left * width + o];
    const double b = tree.value[right * width + o];
    between += shape.criterion == criterion::CriterionKind::poisson
                   ? of_left * y_log_y(a) + of_right * y_log_y(b) - y_log_y(value[o])
                   : of_left * of_right * (a - b) * (a - b);
  }
  return inside + between / static_cast<double>(shape.n_outputs);
}

}  // namespace

CompactTree compact(const Tree& tree, const LeafShape& shape,
                    std::span<const std::int32_t> n_categories) {
  CompactTree out;
  const std::vector<std::size_t> order = preorder(tree);
  std::vector<std::int32_t> name(tree.size());  // as a child: node number, or ~leaf
  std::vector<std::size_t> leaves;
  std::int32_t n_inner = 0;
  bool wide = false;
  for (const std::size_t node : order) {
    if (tree.left[node] == no_child) {
      name[node] = ~static_cast<std::int32_t>(leaves.size());
      leaves.push_back(node);
    } else {
      name[node] = n_inner++;
      wide |= tree.category_start[node] == no_categories && !is_float(tree.threshold[node]);
    }
  }
  out.nodes.reserve(static_cast<std::size_t>(n_inner));
  for (const std::size_t node : order) {
    if (tree.left[node] == no_child) continue;
    CompactNode packed{};
    packed.feature = static_cast<std::uint32_t>(tree.feature[node]);
    packed.child[0] = name[static_cast<std::size_t>(tree.left[node])];
    packed.child[1] = name[static_cast<std::size_t>(tree.right[node])];
    if (tree.missing_left[node] != 0) packed.feature |= CompactNode::missing_left_flag;
    if (tree.category_start[node] != no_categories) {
      packed.feature |= CompactNode::categorical_flag;
      packed.threshold = std::bit_cast<float>(static_cast<std::uint32_t>(out.category_bits.size()));
      const auto start = static_cast<std::size_t>(tree.category_start[node]);
      const std::size_t n_words =
          2 * words_for(n_categories[static_cast<std::size_t>(tree.feature[node])]);
      out.category_bits.append(
          tree.category_bits.begin() + static_cast<std::ptrdiff_t>(start),
          tree.category_bits.begin() + static_cast<std::ptrdiff_t>(start + n_words));
    } else {
      packed.threshold = static_cast<float>(tree.threshold[node]);
    }
    if (wide) out.thresholds.push_back(tree.threshold[node]);
    out.nodes.push_back(packed);
    if (shape.inner_values) {
      const double* value = tree.value.data() + node * tree.value_size;
      out.inner_value.append(value, value + tree.value_size);
      out.inner_impurity.push_back(tree.impurity[node]);
    }
  }
  // The impurity of a boosted tree is an objective, mostly negative, and is not rounded to 0.
  const auto leaf_impurity = [&](std::size_t node) {
    return !shape.inner_values && is_pure(tree, node) ? 0.0 : tree.impurity[node];
  };
  bool counts_rows = true;
  bool float_weights = true;
  bool pure = true;
  out.leaf_rows.reserve(leaves.size());
  for (const std::size_t node : leaves) {
    out.leaf_rows.push_back(static_cast<std::uint32_t>(tree.n_rows[node]));
    counts_rows &= tree.weight[node] == static_cast<double>(tree.n_rows[node]);
    float_weights &= is_float(tree.weight[node]);
    pure &= leaf_impurity(node) == 0;
  }
  for (const std::size_t node : leaves) {
    if (counts_rows) break;
    if (float_weights) {
      out.leaf_weight.push_back(static_cast<float>(tree.weight[node]));
    } else {
      out.leaf_weight_exact.push_back(tree.weight[node]);
    }
  }
  if (shape.one_label()) {
    compact_classes(tree, leaves, shape.n_classes[0], out);
    return out;
  }
  for (const std::size_t node : leaves) {
    const double* value = tree.value.data() + node * tree.value_size;
    out.values.append(value, value + tree.value_size);
    if (!criterion::is_classification(shape.criterion) && !pure) {
      out.leaf_impurity.push_back(leaf_impurity(node));
    }
  }
  return out;
}

void leaf_values(const CompactTree& tree, const LeafShape& shape, std::size_t leaf, double* out) {
  const std::size_t width = shape.width();
  if (!shape.one_label()) {
    std::copy_n(tree.values.data() + leaf * width, width, out);
    return;
  }
  const std::uint32_t label = tree.leaf_class[leaf];
  if (label < width) {
    std::fill(out, out + width, 0.0);
    out[label] = 1.0;
    return;
  }
  const std::size_t start = (label - width) * width;
  if (tree.mixed_counts.empty()) {
    std::copy_n(tree.values.data() + start, width, out);
    return;
  }
  const double weight = tree.weight_of(leaf);
  for (std::size_t k = 0; k < width; ++k) {
    out[k] = static_cast<double>(tree.mixed_counts[start + k]) / weight;
  }
}

Tree expand(const CompactTree& compact_tree, const LeafShape& shape,
            std::span<const std::int32_t> n_categories) {
  Tree tree;
  tree.value_size = shape.width();
  struct Visit {
    std::int32_t name;
    common::NodeIndex parent;
    bool is_left;
    std::int32_t depth;
  };
  std::vector<std::int32_t> names;  // by node of the tree
  std::vector<Visit> stack{{compact_tree.nodes.empty() ? ~0 : 0, no_child, false, 0}};
  while (!stack.empty()) {
    const Visit visit = stack.back();
    stack.pop_back();
    const common::NodeIndex index = tree.add_leaf(0, 0, 0);
    const auto at = static_cast<std::size_t>(index);
    names.push_back(visit.name);
    tree.max_depth = std::max(tree.max_depth, visit.depth);
    if (visit.parent >= 0) {
      (visit.is_left ? tree.left : tree.right)[static_cast<std::size_t>(visit.parent)] = index;
    }
    if (visit.name < 0) continue;
    const auto inner = static_cast<std::size_t>(visit.name);
    const CompactNode& node = compact_tree.nodes[inner];
    const std::uint32_t feature = node.feature & CompactNode::feature_mask;
    tree.feature[at] = static_cast<std::int32_t>(feature);
    tree.missing_left[at] = (node.feature & CompactNode::missing_left_flag) != 0;
    if ((node.feature & CompactNode::categorical_flag) != 0) {
      tree.threshold[at] = std::numeric_limits<double>::quiet_NaN();
      tree.category_start[at] = static_cast<std::int64_t>(tree.category_bits.size());
      const std::size_t start = std::bit_cast<std::uint32_t>(node.threshold);
      const std::size_t n_words = 2 * words_for(n_categories[feature]);
      for (std::size_t word = 0; word < n_words; ++word) {
        tree.category_bits.push_back(compact_tree.category_bits[start + word]);
      }
    } else {
      tree.threshold[at] = compact_tree.thresholds.empty() ? static_cast<double>(node.threshold)
                                                           : compact_tree.thresholds[inner];
    }
    stack.push_back({node.child[1], index, false, visit.depth + 1});
    stack.push_back({node.child[0], index, true, visit.depth + 1});
  }
  const std::size_t width = tree.value_size;
  // Sums, not means of means: integers then have the bits of the grown tree.
  std::vector<double> sums(tree.size() * width);
  // Children come after their parents: backwards, they are known when the parent is reached.
  for (std::size_t at = tree.size(); at-- > 0;) {
    double* const value = tree.value.data() + at * width;
    if (names[at] < 0) {
      const auto leaf = static_cast<std::size_t>(~names[at]);
      tree.n_rows[at] = compact_tree.leaf_rows[leaf];
      tree.weight[at] = compact_tree.weight_of(leaf);
      leaf_values(compact_tree, shape, leaf, value);
      for (std::size_t k = 0; k < width; ++k) sums[at * width + k] = tree.weight[at] * value[k];
      if (criterion::is_classification(shape.criterion)) {
        tree.impurity[at] = class_impurity(shape, value, width);
      } else if (!compact_tree.leaf_impurity.empty()) {
        tree.impurity[at] = compact_tree.leaf_impurity[leaf];
      }
      continue;
    }
    const auto left = static_cast<std::size_t>(tree.left[at]);
    const auto right = static_cast<std::size_t>(tree.right[at]);
    tree.n_rows[at] = tree.n_rows[left] + tree.n_rows[right];
    tree.weight[at] = tree.weight[left] + tree.weight[right];
    if (shape.inner_values) {
      const auto inner = static_cast<std::size_t>(names[at]);
      std::copy_n(compact_tree.inner_value.data() + inner * width, width, value);
      tree.impurity[at] = compact_tree.inner_impurity[inner];
      continue;
    }
    for (std::size_t k = 0; k < width; ++k) {
      sums[at * width + k] = sums[left * width + k] + sums[right * width + k];
      value[k] = sums[at * width + k] / tree.weight[at];
    }
    tree.impurity[at] = joint_impurity(shape, tree, at, left, right);
  }
  return tree;
}

}  // namespace spinney::forest
