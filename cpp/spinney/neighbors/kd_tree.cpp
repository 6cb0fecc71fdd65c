#include "spinney/neighbors/kd_tree.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"
#include "spinney/neighbors/kd_builder.h"
#include "spinney/neighbors/minkowski.h"

namespace spinney::neighbors {

using common::dispatch;
using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

// out[i] = the distance (without root) from a query to point i of a leaf. Returns the number of
// points within the limit.
template <class Metric>
SPINNEY_INLINE std::size_t measure_leaf(const Metric& metric, const double* query, std::size_t d,
                                        const double* leaf, std::size_t width, double limit,
                                        double* out) {
  std::size_t n = 0;
  for (std::size_t start = 0; start < width; start += kd_lanes) {
    double sums[kd_lanes] = {};
    for (std::size_t j = 0; j < d; ++j) {
      const double coordinate = query[j];
      const double* const values = leaf + j * width + start;
      for (std::size_t lane = 0; lane < kd_lanes; ++lane) {
        sums[lane] = metric.join(sums[lane], metric.part(coordinate - values[lane]));
      }
    }
    std::int64_t n_within = 0;
    for (std::size_t lane = 0; lane < kd_lanes; ++lane) {
      out[start + lane] = sums[lane];
      n_within += sums[lane] <= limit ? 1 : 0;
    }
    n += static_cast<std::size_t>(n_within);
  }
  return n;
}

template <class Metric, std::size_t n_features>
SPINNEY_INLINE std::size_t measure_kernel(const double* query, std::size_t d, const double* leaf,
                                          std::size_t width, double limit, double* out) {
  return measure_leaf(Metric{}, query, n_features == 0 ? d : n_features, leaf, width, limit, out);
}

std::size_t measure(const Euclidean&, const double* query, std::size_t d, const double* leaf,
                    std::size_t width, double limit, double* out) {
  if (d == 3) return dispatch<measure_kernel<Euclidean, 3>>(query, d, leaf, width, limit, out);
  if (d == 2) return dispatch<measure_kernel<Euclidean, 2>>(query, d, leaf, width, limit, out);
  return dispatch<measure_kernel<Euclidean, 0>>(query, d, leaf, width, limit, out);
}
std::size_t measure(const Manhattan&, const double* query, std::size_t d, const double* leaf,
                    std::size_t width, double limit, double* out) {
  return dispatch<measure_kernel<Manhattan, 0>>(query, d, leaf, width, limit, out);
}
std::size_t measure(const Chebyshev&, const double* query, std::size_t d, const double* leaf,
                    std::size_t width, double limit, double* out) {
  return dispatch<measure_kernel<Chebyshev, 0>>(query, d, leaf, width, limit, out);
}
std::size_t measure(const Minkowski& metric, const double* query, std::size_t d, const double* leaf,
                    std::size_t width, double limit, double* out) {
  return measure_leaf(metric, query, d, leaf, width, limit, out);
}

// The distance (without root) to the nearest point of a box. The sum has the same order as that of
// a point. Rounding is monotone, so no point of the box has a smaller computed distance.
template <class Metric>
SPINNEY_INLINE double distance_to_box(const Metric& metric, const double* query, const double* box,
                                      std::size_t d) {
  double sum = 0;
  for (std::size_t j = 0; j < d; ++j) {
    const double below = box[j] - query[j];
    const double above = query[j] - box[d + j];
    const double difference = below > above ? below : above;
    sum = metric.join(sum, metric.part(difference > 0 ? difference : 0.0));
  }
  return sum;
}

// The same for two consecutive boxes, with SIMD. The sums have another order, so a factor below one
// compensates for rounding.
SPINNEY_INLINE void distances_to_boxes_kernel(const double* query, const double* boxes,
                                              std::size_t d, double* out) {
  for (int side = 0; side < 2; ++side) {
    const double* const low = boxes + static_cast<std::size_t>(side) * 2 * d;
    const double* const high = low + d;
    double sums[kd_lanes] = {};
    std::size_t j = 0;
    for (; j + kd_lanes <= d; j += kd_lanes) {
      for (std::size_t lane = 0; lane < kd_lanes; ++lane) {
        const double below = low[j + lane] - query[j + lane];
        const double above = query[j + lane] - high[j + lane];
        const double difference = below > above ? below : above;
        const double positive = difference > 0 ? difference : 0.0;
        sums[lane] += positive * positive;
      }
    }
    double sum = 0;
    for (; j < d; ++j) {
      const double below = low[j] - query[j];
      const double above = query[j] - high[j];
      const double difference = below > above ? below : above;
      const double positive = difference > 0 ? difference : 0.0;
      sum += positive * positive;
    }
    for (const double part : sums) sum += part;
    out[side] = sum * (1 - 4e-16 * static_cast<double>(d + kd_lanes));
  }
}

void distances_to_boxes(const double* query, const double* boxes, std::size_t d, double* out) {
  dispatch<distances_to_boxes_kernel>(query, boxes, d, out);
}

template <class Metric>
void distances_to_children(const Metric& metric, const double* query, const double* boxes,
                           std::size_t d, double* out) {
  out[0] = distance_to_box(metric, query, boxes, d);
  out[1] = distance_to_box(metric, query, boxes + 2 * d, d);
}
template <>
void distances_to_children(const Euclidean& metric, const double* query, const double* boxes,
                           std::size_t d, double* out) {
  // Unrolled for two and three features.
  if (d == 3) {
    out[0] = distance_to_box(metric, query, boxes, 3);
    out[1] = distance_to_box(metric, query, boxes + 6, 3);
  } else if (d == 2) {
    out[0] = distance_to_box(metric, query, boxes, 2);
    out[1] = distance_to_box(metric, query, boxes + 4, 2);
  } else if (d < kd_lanes) {
    out[0] = distance_to_box(metric, query, boxes, d);
    out[1] = distance_to_box(metric, query, boxes + 2 * d, d);
  } else {
    distances_to_boxes(query, boxes, d, out);
  }
}

}  // namespace

// Searches a tree for one query after another.
template <class Metric>
class KdSearch {
 public:
  KdSearch(const KdTree& tree, const Metric& metric) : tree_(tree), metric_(metric) {}

  double nearest_in_box(std::size_t node, const double* query) const {
    return distance_to_box(metric_, query, tree_.boxes_.data() + 2 * tree_.d_ * node, tree_.d_);
  }
  double farthest_in_box(std::size_t node, const double* query) const {
    const double* const low = tree_.boxes_.data() + 2 * tree_.d_ * node;
    const double* const high = low + tree_.d_;
    double sum = 0;
    for (std::size_t j = 0; j < tree_.d_; ++j) {
      const double difference = std::max(std::abs(query[j] - low[j]), std::abs(high[j] - query[j]));
      sum = metric_.join(sum, metric_.part(difference));
    }
    return sum;
  }

  void find(const double* query, double shrink, std::int64_t max_leaves, distance::Nearest& out) {
    std::int64_t n_leaves = 0;
    stack_.clear();
    std::size_t at = 0;
    double bound = nearest_in_box(0, query);
    while (true) {
      if (may_help(at, bound * shrink, out)) {
        const KdTree::Node& node = tree_.nodes_[at];
        if (node.child != 0) {
          double bounds[2];
          distances_to_children(metric_, query, tree_.boxes_.data() + 2 * tree_.d_ * node.child,
                                tree_.d_, bounds);
          const double left = bounds[0];
          const double right = bounds[1];
          const bool left_first = left <= right;
          stack_.push_back({node.child + (left_first ? 1 : 0), left_first ? right : left});
          at = node.child + (left_first ? 0 : 1);
          bound = left_first ? left : right;
          continue;
        }
        scan(node, query, out);
        if (++n_leaves == max_leaves) return;
      }
      if (stack_.empty()) return;
      at = stack_.back().node;
      bound = stack_.back().bound;
      stack_.pop_back();
    }
  }

  // Calls body(distance without root, row) for all points within a limit.
  template <class Body>
  void within(const double* query, double limit, const Body& body) {
    visit(query, limit, [](std::size_t) { return false; }, body);
  }

  // The number of points within a limit. Boxes that lie completely inside are not searched.
  distance::RowIndex count(const double* query, double limit) {
    distance::RowIndex n = 0;
    const auto take_whole = [&](std::size_t node) {
      if (farthest_in_box(node, query) > limit) return false;
      n += tree_.nodes_[node].n_points;
      return true;
    };
    visit(query, limit, take_whole, [&](double, Row) { ++n; });
    return n;
  }

 private:
  struct Open {
    std::size_t node;
    double bound;
  };

  // Calls body for the points within a limit, except in nodes for which take_whole(node) is true.
  template <class TakeWhole, class Body>
  void visit(const double* query, double limit, const TakeWhole& take_whole, const Body& body) {
    stack_.assign(1, {0, nearest_in_box(0, query)});
    while (!stack_.empty()) {
      const Open open = stack_.back();
      stack_.pop_back();
      if (open.bound > limit || take_whole(open.node)) continue;
      const KdTree::Node& node = tree_.nodes_[open.node];
      if (node.child != 0) {
        for (const std::size_t child : {node.child + 1, node.child}) {
          stack_.push_back({child, nearest_in_box(child, query)});
        }
        continue;
      }
      if (measure_points(node, query, limit) == 0) continue;
      for (Row i = 0; i < node.n_points; ++i) {
        const double distance = measured_[node.uniform ? 0 : i];
        if (distance <= limit) body(distance, tree_.order_[node.first + i]);
      }
    }
  }

  // Fills measured_ with the distances to the points of a leaf; returns how many are within a
  // limit.
  std::size_t measure_points(const KdTree::Node& node, const double* query, double limit) {
    const std::size_t width = kd_width(node.uniform ? 1 : node.n_points);
    measured_.resize(std::max(measured_.size(), width));
    return measure(metric_, query, tree_.d_, tree_.coordinates_.data() + node.begin, width, limit,
                   measured_.data());
  }

  bool may_help(std::size_t node, double bound, const distance::Nearest& out) const {
    const double worst = out.worst();
    if (bound < worst) return true;
    return bound == worst &&
           static_cast<distance::RowIndex>(tree_.nodes_[node].smallest) < out.worst_index();
  }

  void scan(const KdTree::Node& node, const double* query, distance::Nearest& out) {
    if (measure_points(node, query, out.worst()) == 0) return;
    const Row* const rows = tree_.order_.data() + node.first;
    if (node.uniform) {  // indices ascend, so no row after the first rejected one can enter
      for (Row i = 0; i < node.n_points; ++i) {
        const double worst = out.worst();
        if (measured_[0] > worst) return;
        if (measured_[0] == worst && static_cast<distance::RowIndex>(rows[i]) > out.worst_index()) {
          return;
        }
        out.add(measured_[0], rows[i]);
      }
      return;
    }
    double worst = out.worst();
    for (Row i = 0; i < node.n_points; ++i) {
      if (measured_[i] > worst) continue;
      out.add(measured_[i], rows[i]);
      worst = out.worst();
    }
  }

  const KdTree& tree_;
  Metric metric_;
  std::vector<Open> stack_;
  std::vector<double> measured_;
};

KdTree::KdTree(const double* points, std::size_t n, std::size_t d, double p, std::size_t leaf_size,
               int n_threads)
    : n_(n), d_(d), p_(p) {
  KdBuilder(*this, points, leaf_size, n_threads).build();
}

template <class Body>
void KdTree::with_metric(const Body& body) const {
  if (p_ == 2) {
    body(Euclidean{});
  } else if (p_ == 1) {
    body(Manhattan{});
  } else if (std::isinf(p_)) {
    body(Chebyshev{});
  } else {
    body(Minkowski{p_});
  }
}

// Orders queries along a space-filling curve through a grid over the bounding box. Consecutive
// queries are near each other and share cached nodes.
std::vector<Row> KdTree::cache_friendly_order(const double* queries, std::size_t n_queries) const {
  constexpr std::size_t few = 512;
  constexpr int n_bits = 20;
  std::vector<Row> order(n_queries);
  std::iota(order.begin(), order.end(), Row{0});
  if (n_queries <= few) return order;
  // The grid uses the widest coordinates.
  std::vector<std::size_t> axes(d_);
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  const double* const low = boxes_.data();
  const double* const high = low + d_;
  std::sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
    return high[a] / 2 - low[a] / 2 > high[b] / 2 - low[b] / 2;
  });
  axes.resize(std::min<std::size_t>(d_, 5));
  const int bits_each = n_bits / static_cast<int>(axes.size());
  const double cells = std::ldexp(1.0, bits_each);
  std::vector<std::uint32_t> keys(n_queries);
  for (std::size_t i = 0; i < n_queries; ++i) {
    std::uint32_t key = 0;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const std::size_t j = axes[a];
      const double width = high[j] / 2 - low[j] / 2;
      const double share = width > 0 ? (queries[i * d_ + j] / 2 - low[j] / 2) / width : 0.0;
      const auto cell =
          static_cast<std::uint32_t>(std::min(std::max(share * cells, 0.0), cells - 1));
      for (int bit = 0; bit < bits_each; ++bit) {
        key |= (cell >> bit & 1U) << (static_cast<std::size_t>(bit) * axes.size() + a);
      }
    }
    keys[i] = key;
  }
  // Radix sort with two passes.
  constexpr std::size_t n_values = std::size_t{1} << (n_bits / 2);
  std::vector<Row> sorted(n_queries);
  for (int pass = 0; pass < 2; ++pass) {
    const int shift = pass * n_bits / 2;
    std::vector<std::size_t> starts(n_values + 1);
    for (const Row i : order) ++starts[(keys[i] >> shift & (n_values - 1)) + 1];
    for (std::size_t v = 0; v < n_values; ++v) starts[v + 1] += starts[v];
    for (const Row i : order) sorted[starts[keys[i] >> shift & (n_values - 1)]++] = i;
    std::swap(order, sorted);
  }
  return order;
}

void KdTree::query(const double* queries, std::size_t n_queries, const KdQuery& options,
                   double* distances, distance::RowIndex* indices) const {
  constexpr std::size_t block_size = 128;
  const std::size_t n_blocks = (n_queries + block_size - 1) / block_size;
  const double work = 500.0 * static_cast<double>(n_queries);
  const std::vector<Row> order = cache_friendly_order(queries, n_queries);
  with_metric([&](const auto& metric) {
    const double shrink = metric.power(1 + options.eps);
    parallel_for(
        n_blocks, worthwhile_threads(work, options.n_threads), [&](std::size_t block, int) {
          KdSearch search(*this, metric);
          distance::Nearest found(options.k);
          const std::size_t end = std::min(n_queries, (block + 1) * block_size);
          for (std::size_t at = block * block_size; at < end; ++at) {
            const std::size_t i = order[at];
            found.clear();
            search.find(queries + i * d_, shrink, options.max_leaves, found);
            found.sort();
            for (std::size_t j = 0; j < options.k; ++j) {
              const bool known = j < found.size();
              distances[i * options.k + j] = known ? metric.root(found.distances()[j])
                                                   : std::numeric_limits<double>::infinity();
              indices[i * options.k + j] =
                  known ? found.indices()[j] : static_cast<distance::RowIndex>(n_);
            }
          }
        });
  });
}

Found KdTree::within(const double* queries, std::size_t n_queries, const double* radii, bool sorted,
                     int n_threads) const {
  const int threads = worthwhile_threads(1000.0 * static_cast<double>(n_queries), n_threads);
  Found out;
  with_metric([&](const auto& metric) {
    out = gather_found(n_queries, sorted, threads, [&] {
      return [&, search = KdSearch(*this, metric)](std::size_t i, auto& rows) mutable {
        if (radii[i] < 0) return;
        search.within(queries + i * d_, metric.power(radii[i]), [&](double distance, Row row) {
          rows.emplace_back(metric.root(distance), row);
        });
      };
    });
  });
  return out;
}

std::vector<distance::RowIndex> KdTree::count_within(const double* queries, std::size_t n_queries,
                                                     const double* radii, int n_threads) const {
  constexpr std::size_t block_size = 64;
  const std::size_t n_blocks = (n_queries + block_size - 1) / block_size;
  const int threads = worthwhile_threads(1000.0 * static_cast<double>(n_queries), n_threads);
  std::vector<distance::RowIndex> counts(n_queries);
  with_metric([&](const auto& metric) {
    parallel_for(n_blocks, threads, [&](std::size_t block, int) {
      KdSearch search(*this, metric);
      const std::size_t end = std::min(n_queries, (block + 1) * block_size);
      for (std::size_t i = block * block_size; i < end; ++i) {
        if (radii[i] < 0) continue;
        counts[i] = search.count(queries + i * d_, metric.power(radii[i]));
      }
    });
  });
  return counts;
}

}  // namespace spinney::neighbors
