#include "spinney/explain/share_walk.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "spinney/common/dispatch.h"
#include "spinney/common/elementary.h"
#include "spinney/common/simd.h"

namespace spinney::explain {

using common::dispatch;
using common::store;

namespace {

using Lanes = common::Doubles8;

constexpr std::size_t n_lanes = common::lane_count<Lanes>;

SPINNEY_INLINE Lanes load(const double* from) { return common::load<Lanes>(from); }

using Mask = common::Mask<Lanes>;

constexpr std::size_t n_vectors = 2;
constexpr std::size_t n_together = n_vectors * n_lanes;

// For an edge, at each node t: its factor for a row that meets the condition and one that does not,
// their reciprocals, and (o - r)·w / factor for a row that meets it. For one that does not that is
// -w/(1-t), for any edge.
enum Constant : std::size_t { met, unmet, over_met, over_unmet, part_met, n_constants };

SPINNEY_INLINE Lanes choose(const Mask& mask, double yes, double no) {
  return common::select_bits(mask, common::broadcast<Lanes>(yes), common::broadcast<Lanes>(no));
}

SPINNEY_INLINE Mask load_mask(const double* from) { return common::cast_bits<Mask>(load(from)); }

SPINNEY_INLINE void store_mask(double* to, const Mask& mask) {
  store(to, common::cast_bits<Lanes>(mask));
}

struct Buffers {
  double* masks;     // [depth][rows]: which rows meet the condition of the edge at this depth
  double* products;  // [depth][node][rows]
  double* sums;      // [depth][node][width][rows], of the leaves below
  double* phi;       // [feature][width][rows], or of each pair of features
};

// The features of the present path, each with its last edge.
struct Active {
  std::int32_t feature;
  std::int32_t edge;
};

struct WalkView {
  const GameTree* tree;
  const SharePlan* plan;
  std::size_t n_nodes;
  std::size_t width;
  const double* x;  // of the first row
  std::size_t stride;
  const std::int32_t* slot;
  bool interactions;
};

SPINNEY_INLINE void find_mask(const WalkView& view, const WalkEdge& edge, const Buffers& to) {
  const GameTree& tree = *view.tree;
  const auto node = static_cast<std::size_t>(edge.split);
  const double* const x =
      view.x + static_cast<std::size_t>(view.slot[tree.feature[node]]) * view.stride;
  double* const mask = to.masks + static_cast<std::size_t>(edge.depth) * n_together;
  if (tree.is_categorical(node)) {
    for (std::size_t i = 0; i < n_together; ++i) {
      const std::int64_t meets = tree.goes_left(node, x[i]) == edge.left ? -1 : 0;
      std::memcpy(mask + i, &meets, sizeof(meets));
    }
  } else {
    const Mask missing_left = Mask{} - static_cast<std::int64_t>(tree.missing_left[node]);
    const Mask flip = Mask{} - static_cast<std::int64_t>(edge.left ? 0 : 1);
    const Lanes threshold = Lanes{} + tree.threshold[node];
    for (std::size_t v = 0; v < n_vectors; ++v) {
      const Lanes value = load(x + v * n_lanes);
      const Mask below = value <= threshold;
      const Mask missing = value != value;
      store_mask(mask + v * n_lanes, (below | (missing & missing_left)) ^ flip);
    }
  }
  if (edge.previous >= 0) {
    const auto depth =
        static_cast<std::size_t>(view.plan->edges[static_cast<std::size_t>(edge.previous)].depth);
    const double* const before = to.masks + depth * n_together;
    for (std::size_t v = 0; v < n_vectors; ++v) {
      store_mask(mask + v * n_lanes,
                 load_mask(mask + v * n_lanes) & load_mask(before + v * n_lanes));
    }
  }
}

SPINNEY_INLINE const double* constants_of(const WalkView& view, std::int32_t edge) {
  return view.plan->constants.data() + static_cast<std::size_t>(edge) * n_constants * view.n_nodes;
}

// The input of an edge's loops over the nodes of the quadrature.
struct EdgeConstants {
  const double* own;
  const double* before;  // of the edge above with the same feature
  Mask meets[n_vectors];
  Mask met_before[n_vectors];
};

SPINNEY_INLINE void load_edge(const WalkView& view, std::int32_t number, const Buffers& from,
                              EdgeConstants& out) {
  const WalkEdge& edge = view.plan->edges[static_cast<std::size_t>(number)];
  out.own = out.before = constants_of(view, number);
  const auto depth = static_cast<std::size_t>(edge.depth);
  auto depth_before = depth;
  if (edge.previous >= 0) {
    out.before = constants_of(view, edge.previous);
    depth_before =
        static_cast<std::size_t>(view.plan->edges[static_cast<std::size_t>(edge.previous)].depth);
  }
  for (std::size_t v = 0; v < n_vectors; ++v) {
    out.meets[v] = load_mask(from.masks + depth * n_together + v * n_lanes);
    out.met_before[v] = load_mask(from.masks + depth_before * n_together + v * n_lanes);
  }
}

// The product at the end of the edge, at node k of the quadrature.
template <bool again>
SPINNEY_INLINE Lanes lengthen(const EdgeConstants& edge, std::size_t n_nodes, std::size_t k,
                              std::size_t v, const double* product) {
  const Lanes factor =
      choose(edge.meets[v], edge.own[met * n_nodes + k], edge.own[unmet * n_nodes + k]);
  if constexpr (again) {
    const Lanes over = choose(edge.met_before[v], edge.before[over_met * n_nodes + k],
                              edge.before[over_unmet * n_nodes + k]);
    return load(product) * over * factor;
  } else {
    return load(product) * factor;
  }
}

// The feature's part of the leaves below the edge. If an edge above has the same feature, it has
// this part already, so it is subtracted there.
template <bool again>
SPINNEY_INLINE Lanes part_of(const EdgeConstants& edge, const double* weight, std::size_t n_nodes,
                             std::size_t k, std::size_t v) {
  const Lanes part = choose(edge.meets[v], edge.own[part_met * n_nodes + k], -weight[k]);
  if constexpr (again) {
    return part - choose(edge.met_before[v], edge.before[part_met * n_nodes + k], -weight[k]);
  } else {
    return part;
  }
}

template <bool again>
SPINNEY_INLINE void go_down(const WalkView& view, std::int32_t number, const Buffers& to) {
  const auto depth =
      static_cast<std::size_t>(view.plan->edges[static_cast<std::size_t>(number)].depth);
  const std::size_t n_nodes = view.n_nodes;
  EdgeConstants edge;
  load_edge(view, number, to, edge);
  const double* const from = to.products + (depth - 1) * n_nodes * n_together;
  double* const product = to.products + depth * n_nodes * n_together;
  for (std::size_t k = 0; k < n_nodes; ++k) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      const std::size_t at = k * n_together + v * n_lanes;
      store(product + at, lengthen<again>(edge, n_nodes, k, v, from + at));
    }
  }
}

// Back from an edge: its feature gets its part of the sums below, which go up.
template <bool again>
SPINNEY_INLINE void come_up(const WalkView& view, std::int32_t number, const Buffers& to) {
  const WalkEdge& walked = view.plan->edges[static_cast<std::size_t>(number)];
  const auto depth = static_cast<std::size_t>(walked.depth);
  const std::size_t n_nodes = view.n_nodes;
  const std::size_t width = view.width;
  const double* const weight = view.plan->weight.data();
  EdgeConstants edge;
  load_edge(view, number, to, edge);
  const std::size_t n = n_nodes * width * n_together;
  const double* const sums = to.sums + depth * n;
  double* const above = to.sums + (depth - 1) * n;
  double* const phi = to.phi + static_cast<std::size_t>(walked.feature) * width * n_together;
  for (std::size_t w = 0; w < width; ++w) {
    Lanes total[n_vectors] = {};
    for (std::size_t k = 0; k < n_nodes; ++k) {
      for (std::size_t v = 0; v < n_vectors; ++v) {
        const std::size_t at = (k * width + w) * n_together + v * n_lanes;
        const Lanes below = load(sums + at);
        total[v] += part_of<again>(edge, weight, n_nodes, k, v) * below;
        store(above + at, load(above + at) + below);
      }
    }
    for (std::size_t v = 0; v < n_vectors; ++v) {
      double* const at = phi + w * n_together + v * n_lanes;
      store(at, load(at) + total[v]);
    }
  }
}

// To a leaf and back: nothing but the sums above and the feature's part is written.
template <bool again>
SPINNEY_INLINE void visit_leaf(const WalkView& view, std::int32_t number, const Buffers& to) {
  const WalkEdge& walked = view.plan->edges[static_cast<std::size_t>(number)];
  const auto depth = static_cast<std::size_t>(walked.depth);
  const std::size_t n_nodes = view.n_nodes;
  const std::size_t width = view.width;
  const double* const weight = view.plan->weight.data();
  EdgeConstants edge;
  load_edge(view, number, to, edge);
  const double* const value =
      view.tree->value.data() + static_cast<std::size_t>(walked.leaf) * width;
  const double* const from = to.products + (depth - 1) * n_nodes * n_together;
  double* const above = to.sums + (depth - 1) * n_nodes * width * n_together;
  Lanes total[n_vectors] = {};
  for (std::size_t k = 0; k < n_nodes; ++k) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      const Lanes product =
          lengthen<again>(edge, n_nodes, k, v, from + k * n_together + v * n_lanes);
      total[v] += part_of<again>(edge, weight, n_nodes, k, v) * product;
      for (std::size_t w = 0; w < width; ++w) {
        double* const at = above + (k * width + w) * n_together + v * n_lanes;
        store(at, load(at) + value[w] * product);
      }
    }
  }
  double* const phi = to.phi + static_cast<std::size_t>(walked.feature) * width * n_together;
  for (std::size_t w = 0; w < width; ++w) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      double* const at = phi + w * n_together + v * n_lanes;
      store(at, load(at) + value[w] * total[v]);
    }
  }
}

// Pairs of a leaf: half of Σ_k part_i · part_j · product / w.
SPINNEY_INLINE void add_pairs(const WalkView& view, const WalkEdge& leaf,
                              const std::vector<Active>& active, const Buffers& to) {
  const std::size_t n_nodes = view.n_nodes;
  const std::size_t width = view.width;
  const std::size_t n_features = view.plan->features.size();
  const double* const value = view.tree->value.data() + static_cast<std::size_t>(leaf.leaf) * width;
  const double* const product =
      to.products + static_cast<std::size_t>(leaf.depth) * n_nodes * n_together;
  const double* const quadrature = view.plan->weight.data() + n_nodes;  // the weights themselves
  for (std::size_t i = 0; i < active.size(); ++i) {
    const double* const first = constants_of(view, active[i].edge) + part_met * n_nodes;
    const double* const first_mask =
        to.masks +
        static_cast<std::size_t>(view.plan->edges[static_cast<std::size_t>(active[i].edge)].depth) *
            n_together;
    for (std::size_t j = i + 1; j < active.size(); ++j) {
      const double* const second = constants_of(view, active[j].edge) + part_met * n_nodes;
      const double* const second_mask =
          to.masks + static_cast<std::size_t>(
                         view.plan->edges[static_cast<std::size_t>(active[j].edge)].depth) *
                         n_together;
      const auto low = static_cast<std::size_t>(std::min(active[i].feature, active[j].feature));
      const auto high = static_cast<std::size_t>(std::max(active[i].feature, active[j].feature));
      double* const phi = to.phi + (low * n_features + high) * width * n_together;
      for (std::size_t v = 0; v < n_vectors; ++v) {
        const Mask first_meets = load_mask(first_mask + v * n_lanes);
        const Mask second_meets = load_mask(second_mask + v * n_lanes);
        Lanes total{};
        for (std::size_t k = 0; k < n_nodes; ++k) {
          total += choose(first_meets, first[k], -view.plan->weight[k]) *
                   choose(second_meets, second[k], -view.plan->weight[k]) *
                   load(product + k * n_together + v * n_lanes) * (0.5 / quadrature[k]);
        }
        for (std::size_t w = 0; w < width; ++w) {
          double* const at = phi + w * n_together + v * n_lanes;
          store(at, load(at) + value[w] * total);
        }
      }
    }
  }
}

SPINNEY_INLINE void walk_values(const WalkView& view, const Buffers& to) {
  const SharePlan& plan = *view.plan;
  const std::size_t n = view.n_nodes * view.width * n_together;
  for (const WalkStep& step : plan.steps) {
    const WalkEdge& edge = plan.edges[static_cast<std::size_t>(step.edge)];
    const bool again = edge.previous >= 0;
    if (step.up) {
      again ? come_up<true>(view, step.edge, to) : come_up<false>(view, step.edge, to);
      continue;
    }
    find_mask(view, edge, to);
    if (edge.leaf >= 0) {
      again ? visit_leaf<true>(view, step.edge, to) : visit_leaf<false>(view, step.edge, to);
      continue;
    }
    again ? go_down<true>(view, step.edge, to) : go_down<false>(view, step.edge, to);
    double* const sums = to.sums + static_cast<std::size_t>(edge.depth) * n;
    std::fill(sums, sums + n, 0.0);
  }
}

SPINNEY_INLINE void walk_pairs(const WalkView& view, const Buffers& to,
                               std::vector<Active>& active) {
  const SharePlan& plan = *view.plan;
  active.clear();
  for (const WalkStep& step : plan.steps) {
    const WalkEdge& edge = plan.edges[static_cast<std::size_t>(step.edge)];
    if (!step.up) {
      find_mask(view, edge, to);
      edge.previous >= 0 ? go_down<true>(view, step.edge, to) : go_down<false>(view, step.edge, to);
      if (edge.previous < 0) {
        active.push_back({edge.feature, step.edge});
      } else {
        for (Active& a : active) a.edge = a.feature == edge.feature ? step.edge : a.edge;
      }
      if (edge.leaf < 0) continue;
      add_pairs(view, edge, active, to);
    }
    if (edge.previous < 0) {
      active.pop_back();
    } else {
      for (Active& a : active) a.edge = a.feature == edge.feature ? edge.previous : a.edge;
    }
  }
}

}  // namespace

void gauss_legendre(std::size_t n, std::vector<double>& nodes, std::vector<double>& weights) {
  nodes.resize(n);
  weights.resize(n);
  const auto count = static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) {
    double x = common::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) / (count + 0.5));
    double slope = 1;
    for (int round = 0; round < 100; ++round) {
      double before = 1;
      double value = x;
      for (std::size_t k = 2; k <= n; ++k) {
        const auto degree = static_cast<double>(k);
        const double next = ((2 * degree - 1) * x * value - (degree - 1) * before) / degree;
        before = value;
        value = next;
      }
      slope = count * (x * value - before) / (x * x - 1);
      const double change = value / slope;
      x -= change;
      if (std::abs(change) < 1e-16) break;
    }
    nodes[i] = (1 + x) / 2;
    weights[i] = 1 / ((1 - x * x) * slope * slope);
  }
}

void plan_walk(const GameTree& tree, const TreePlan* tables, SharePlan& plan) {
  plan.edges.clear();
  plan.steps.clear();
  plan.features.clear();
  plan.weight.clear();
  plan.depth = 0;
  if ((tables != nullptr && !tables->any_walked()) || tree.is_leaf(0)) return;
  struct Visit {
    std::size_t node;
    std::int32_t edge;  // that led here, or -1
    bool up;
  };
  std::vector<Visit> stack{{0, -1, false}};
  std::vector<std::int32_t> above;  // edges of the present path
  std::vector<double> share;        // of each edge, with those before it on the same feature
  std::size_t most = 1;
  while (!stack.empty()) {
    const Visit visit = stack.back();
    stack.pop_back();
    if (visit.up) {
      plan.steps.push_back({visit.edge, true});
      above.pop_back();
      continue;
    }
    if (visit.edge >= 0) {
      WalkEdge& edge = plan.edges[static_cast<std::size_t>(visit.edge)];
      const auto split = static_cast<std::size_t>(edge.split);
      double own = edge.left ? tree.share_left[split] : 1 - tree.share_left[split];
      std::size_t n_conditions = 1;
      for (const std::int32_t e : above) {
        if (plan.edges[static_cast<std::size_t>(e)].feature == edge.feature) edge.previous = e;
        n_conditions += plan.edges[static_cast<std::size_t>(e)].previous < 0 ? 1 : 0;
      }
      if (edge.previous >= 0) {
        own *= share[static_cast<std::size_t>(edge.previous)];
        --n_conditions;
      }
      share[static_cast<std::size_t>(visit.edge)] = own;
      most = std::max(most, n_conditions);
      edge.depth = static_cast<std::int32_t>(above.size()) + 1;
      plan.depth = std::max(plan.depth, above.size() + 1);
      plan.steps.push_back({visit.edge, false});
      if (tree.is_leaf(visit.node)) {
        edge.leaf = static_cast<std::int32_t>(visit.node);
        continue;
      }
      above.push_back(visit.edge);
      stack.push_back({visit.node, visit.edge, true});
    }
    for (const bool left : {false, true}) {
      const auto child =
          static_cast<std::size_t>(left ? tree.left[visit.node] : tree.right[visit.node]);
      if (tables != nullptr && tables->walked[child] == 0) continue;
      const auto number = static_cast<std::int32_t>(plan.edges.size());
      plan.edges.push_back(
          {static_cast<std::int32_t>(visit.node), tree.feature[visit.node], 0, -1, -1, left});
      share.push_back(0);
      stack.push_back({child, number, false});
    }
  }
  for (WalkEdge& edge : plan.edges) plan.features.push_back(edge.feature);
  std::sort(plan.features.begin(), plan.features.end());
  plan.features.erase(std::unique(plan.features.begin(), plan.features.end()), plan.features.end());
  for (WalkEdge& edge : plan.edges) {
    edge.feature = static_cast<std::int32_t>(
        std::lower_bound(plan.features.begin(), plan.features.end(), edge.feature) -
        plan.features.begin());
  }
  plan.n_nodes = (most + 1) / 2;
  std::vector<double> nodes;
  std::vector<double> weights;
  gauss_legendre(plan.n_nodes, nodes, weights);
  for (std::size_t k = 0; k < plan.n_nodes; ++k) plan.weight.push_back(weights[k] / (1 - nodes[k]));
  plan.weight.insert(plan.weight.end(), weights.begin(), weights.end());
  plan.constants.resize(plan.edges.size() * n_constants * plan.n_nodes);
  for (std::size_t e = 0; e < plan.edges.size(); ++e) {
    double* const own = plan.constants.data() + e * n_constants * plan.n_nodes;
    for (std::size_t k = 0; k < plan.n_nodes; ++k) {
      const double no = (1 - nodes[k]) * share[e];
      const double yes = nodes[k] + no;
      own[met * plan.n_nodes + k] = yes;
      own[unmet * plan.n_nodes + k] = no;
      own[over_met * plan.n_nodes + k] = 1 / yes;
      own[over_unmet * plan.n_nodes + k] = no > 0 ? 1 / no : 0;  // the product is zero there
      own[part_met * plan.n_nodes + k] = weights[k] * (1 - share[e]) / yes;
    }
  }
}

void add_walk(const GameTree& tree, const SharePlan& plan, const RowValues& rows,
              const OutputLayout& layout, WalkScratch& scratch, double* out) {
  if (plan.edges.empty()) return;
  const std::size_t levels = plan.depth + 1;
  const std::size_t width = tree.width;
  const std::size_t n_features = plan.features.size();
  const std::size_t n_phi =
      n_features * (layout.interactions ? n_features : 1) * width * n_together;
  const std::size_t n_products = levels * plan.n_nodes * n_together;
  scratch.buffer.resize(levels * n_together + n_products * (1 + width) + n_phi + n_lanes);
  Buffers to{};
  // Vectors that lie across two cache lines take twice as long.
  const auto address = reinterpret_cast<std::uintptr_t>(scratch.buffer.data());
  to.masks = scratch.buffer.data() + (64 - address % 64) % 64 / sizeof(double);
  to.products = to.masks + levels * n_together;
  to.sums = to.products + n_products;
  to.phi = to.sums + n_products * width;
  std::fill(to.products, to.products + plan.n_nodes * n_together, 1.0);
  std::vector<Active> active;
  const std::size_t per_row = layout.per_row();
  for (std::size_t first = 0; first < rows.n; first += n_together) {
    std::fill(to.phi, to.phi + n_phi, 0.0);
    const WalkView view{&tree,
                        &plan,
                        plan.n_nodes,
                        width,
                        rows.values.data() + first,
                        rows.stride,
                        rows.slot.data(),
                        layout.interactions};
    const std::size_t n = std::min(n_together, rows.n - first);
    if (layout.interactions) {
      dispatch<walk_pairs>(view, to, active);
    } else {
      dispatch<walk_values>(view, to);
    }
    const auto add = [&](std::size_t from, std::size_t position) {
      for (std::size_t w = 0; w < width; ++w) {
        const double* const phi = to.phi + (from * width + w) * n_together;
        for (std::size_t i = 0; i < n; ++i) {
          out[(first + i) * per_row + position + tree.output + w] += phi[i];
        }
      }
    };
    for (std::size_t i = 0; i < n_features; ++i) {
      if (!layout.interactions) {
        add(i, layout.of(plan.features[i]));
        continue;
      }
      for (std::size_t j = i + 1; j < n_features; ++j) {
        add(i * n_features + j, layout.of(plan.features[i], plan.features[j]));
      }
    }
  }
}

}  // namespace spinney::explain
