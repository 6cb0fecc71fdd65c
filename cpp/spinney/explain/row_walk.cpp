#include "spinney/explain/row_walk.h"

#include <algorithm>

#include "spinney/common/dispatch.h"
#include "spinney/common/simd.h"
#include "spinney/explain/share_walk.h"

namespace spinney::explain {

using common::dispatch;
using common::store;

namespace {

using Lanes = common::Doubles8;

constexpr std::size_t n_lanes = common::lane_count<Lanes>;

SPINNEY_INLINE Lanes load(const double* from) { return common::load<Lanes>(from); }

// The edge that leads to a level of the present path.
struct Level {
  std::int32_t node;
  std::int32_t slot;
  std::int32_t previous;  // the level above whose edge has the same feature, or 0
  std::int8_t n_done;     // children that have been visited
  bool goes_left;         // the row's side at the node
  bool meets;             // whether it meets the feature's condition so far
  bool counts;            // whether the feature gets a part here
  double share;           // of training rows that meet it
};

// For each level, [vector][8]; sums of the leaves below: [width][vector][8].
struct Buffers {
  Level* levels;
  double* product;
  double* over;  // the reciprocal of the edge's factor, if the row meets its condition
  double* part;
  double* sums;
};

template <std::size_t n_vectors>
SPINNEY_INLINE void walk_row(const GameTree& tree, const double* quadrature, const double* x,
                             std::size_t stride, const std::int32_t* slot_of, std::int32_t* last,
                             std::size_t n_outputs, const Buffers& to, double* phi) {
  constexpr std::size_t n = n_vectors * n_lanes;
  const double* const t = quadrature;
  const double* const rest = quadrature + n;
  const double* const weight = quadrature + 2 * n;
  const double* const over_rest = quadrature + 3 * n;
  const std::size_t width = tree.width;
  for (std::size_t i = 0; i < n; ++i) to.product[i] = 1;
  for (std::size_t i = 0; i < n * width; ++i) to.sums[i] = 0;
  std::size_t d = 0;
  const auto arrive = [&](std::size_t node) {
    Level& level = to.levels[d];
    level.node = static_cast<std::int32_t>(node);
    level.n_done = 0;
    const std::size_t slot = static_cast<std::size_t>(slot_of[tree.feature[node]]);
    level.goes_left = tree.goes_left(node, x[slot * stride]);
  };
  arrive(0);
  while (true) {
    Level& level = to.levels[d];
    if (level.n_done == 2) {
      if (d == 0) return;
      const double* const sums = to.sums + d * n * width;
      double* const above = to.sums + (d - 1) * n * width;
      const double* const part = to.part + d * n;
      double* const own =
          phi + (static_cast<std::size_t>(level.slot) * n_outputs + tree.output) * n_lanes;
      for (std::size_t w = 0; w < width; ++w) {
        Lanes total{};
        for (std::size_t v = 0; v < n_vectors; ++v) {
          const std::size_t at = v * n_lanes;
          const Lanes below = load(sums + w * n + at);
          total += load(part + at) * below;
          store(above + w * n + at, load(above + w * n + at) + below);
        }
        if (level.counts) store(own + w * n_lanes, load(own + w * n_lanes) + total);
      }
      last[level.slot] = level.previous;
      --d;
      continue;
    }
    const auto node = static_cast<std::size_t>(level.node);
    const bool left = level.n_done++ == 0;
    const auto child = static_cast<std::size_t>(left ? tree.left[node] : tree.right[node]);
    const double share = left ? tree.share_left[node] : 1 - tree.share_left[node];
    const std::int32_t slot = slot_of[tree.feature[node]];
    const std::int32_t previous = last[slot];
    const Level& before = to.levels[previous];
    Level& next = to.levels[d + 1];
    next.slot = slot;
    next.previous = previous;
    next.meets = left == level.goes_left && (previous == 0 || before.meets);
    next.share = previous == 0 ? share : before.share * share;
    next.counts = true;
    const double* const from = to.product + d * n;
    Lanes product[n_vectors];
    Lanes part[n_vectors];
    // If an edge above has the same feature, its factor leaves the product, and its part is
    // subtracted.
    const bool met_before = previous != 0 && before.meets;
    const double* const over_before = to.over + static_cast<std::size_t>(previous) * n;
    if (previous != 0 && !before.meets) {
      next.counts = false;
      for (std::size_t v = 0; v < n_vectors; ++v) {
        product[v] = load(from + v * n_lanes) * share;
        part[v] = Lanes{};
      }
    } else {
      for (std::size_t v = 0; v < n_vectors; ++v) {
        const std::size_t at = v * n_lanes;
        product[v] = load(from + at);
        if (next.meets) {
          const Lanes factor = load(t + at) + load(rest + at) * next.share;
          const Lanes over = (Lanes{} + 1.0) / factor;
          store(to.over + (d + 1) * n + at, over);
          product[v] *= factor;
          part[v] = load(weight + at) * (1 - next.share) * over;
        } else {
          product[v] *= load(rest + at) * next.share;
          part[v] = -load(over_rest + at);
        }
        if (met_before) {
          const Lanes over = load(over_before + at);
          product[v] *= over;
          part[v] -= load(weight + at) * (1 - before.share) * over;
        }
      }
    }
    if (tree.is_leaf(child)) {
      double* const above = to.sums + d * n * width;
      const double* const value = tree.value.data() + child * width;
      double* const own =
          phi + (static_cast<std::size_t>(slot) * n_outputs + tree.output) * n_lanes;
      Lanes total{};
      for (std::size_t v = 0; v < n_vectors; ++v) total += part[v] * product[v];
      for (std::size_t w = 0; w < width; ++w) {
        for (std::size_t v = 0; v < n_vectors; ++v) {
          double* const at = above + w * n + v * n_lanes;
          store(at, load(at) + value[w] * product[v]);
        }
        store(own + w * n_lanes, load(own + w * n_lanes) + value[w] * total);
      }
      continue;
    }
    ++d;
    for (std::size_t v = 0; v < n_vectors; ++v) {
      store(to.product + d * n + v * n_lanes, product[v]);
      store(to.part + d * n + v * n_lanes, part[v]);
    }
    std::fill(to.sums + d * n * width, to.sums + (d + 1) * n * width, 0.0);
    last[slot] = static_cast<std::int32_t>(d);
    arrive(child);
  }
}

}  // namespace

std::size_t Quadratures::n_vectors(std::size_t n_conditions) {
  const std::size_t needed = ((n_conditions + 1) / 2 + n_lanes - 1) / n_lanes;
  return needed <= 1 ? 1 : (needed == 2 ? 2 : 4);
}

Quadratures::Quadratures() {
  by_nodes_.resize(most_nodes + 1);
  std::vector<double> nodes;
  std::vector<double> weights;
  for (std::size_t k = 1; k <= most_nodes; ++k) {
    gauss_legendre(k, nodes, weights);
    const std::size_t n = n_vectors(2 * k) * n_lanes;
    std::vector<double>& all = by_nodes_[k];
    all.assign(4 * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      const double t = i < k ? nodes[i] : 0.5;
      const double w = i < k ? weights[i] : 0.0;
      all[i] = t;
      all[n + i] = 1 - t;
      all[2 * n + i] = w;
      all[3 * n + i] = w / (1 - t);
    }
  }
}

const double* Quadratures::of(std::size_t n_conditions) const {
  return by_nodes_[std::max<std::size_t>(1, (n_conditions + 1) / 2)].data();
}

PathSizes measure_paths(const GameTree& tree, std::size_t n_features) {
  std::vector<std::size_t> depths(tree.size(), 0);
  std::vector<std::uint8_t> used(n_features, 0);
  PathSizes out;
  std::size_t n_used = 0;
  for (std::size_t node = 0; node < tree.size(); ++node) {
    out.depth = std::max(out.depth, depths[node]);
    if (tree.is_leaf(node)) continue;
    depths[static_cast<std::size_t>(tree.left[node])] = depths[node] + 1;
    depths[static_cast<std::size_t>(tree.right[node])] = depths[node] + 1;
    std::uint8_t& is_used = used[static_cast<std::size_t>(tree.feature[node])];
    n_used += is_used == 0;
    is_used = 1;
  }
  out.n_conditions = std::min(out.depth, n_used);
  return out;
}

void add_rows(const GameTree& tree, const PathSizes& paths, const Quadratures& quadratures,
              const RowValues& rows, std::size_t n_slots, std::size_t n_outputs,
              RowWalkScratch& scratch, double* lanes) {
  if (tree.is_leaf(0)) return;
  const double* const quadrature = quadratures.of(paths.n_conditions);
  const std::size_t n_vectors = Quadratures::n_vectors(paths.n_conditions);
  const std::size_t n_levels = paths.depth + 2;
  const std::size_t per_level = n_vectors * n_lanes;
  std::vector<Level> levels(n_levels);
  scratch.last.assign(n_slots, 0);
  scratch.buffer.resize(n_levels * per_level * (3 + tree.width) + n_lanes);
  // Vectors that lie across two cache lines take twice as long.
  const auto address = reinterpret_cast<std::uintptr_t>(scratch.buffer.data());
  double* const first = scratch.buffer.data() + (64 - address % 64) % 64 / sizeof(double);
  const Buffers to{levels.data(), first, first + n_levels * per_level,
                   first + 2 * n_levels * per_level, first + 3 * n_levels * per_level};
  const auto walk_rows = [&](const auto& walk) {
    for (std::size_t row = 0; row < rows.n; ++row) {
      walk(tree, quadrature, rows.values.data() + row, rows.stride, rows.slot.data(),
           scratch.last.data(), n_outputs, to, lanes + row * n_slots * n_outputs * n_lanes);
    }
  };
  if (n_vectors == 1) {
    walk_rows(dispatch<walk_row<1>>);
  } else if (n_vectors == 2) {
    walk_rows(dispatch<walk_row<2>>);
  } else {
    walk_rows(dispatch<walk_row<4>>);
  }
}

}  // namespace spinney::explain
