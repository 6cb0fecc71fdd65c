#include "spinney/neighbors/kd_builder.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "spinney/common/parallel.h"

namespace spinney::neighbors {

using common::parallel_for;
using common::Row;

namespace {

constexpr Row subtree_size = 8192;  // most points of a subtree that one thread builds
constexpr Row sampled_from = 4096;  // the median of more points is estimated from a sample
constexpr std::size_t sample_size = 512;

}  // namespace

KdBuilder::KdBuilder(KdTree& tree, const double* points, std::size_t leaf_size, int n_threads)
    : tree_(tree),
      n_(tree.n_),
      d_(tree.d_),
      leaf_size_(leaf_size),
      n_threads_(n_threads),
      first_(n_ * d_),
      second_(n_ * d_),
      first_rows_(n_),
      second_rows_(n_) {
  std::copy(points, points + n_ * d_, first_.data());
  std::iota(first_rows_.begin(), first_rows_.end(), Row{0});
}

void KdBuilder::build() {
  std::vector<KdTree::Node>& nodes = tree_.nodes_;
  std::vector<double>& boxes = tree_.boxes_;
  nodes.resize(1);
  boxes.resize(2 * d_);
  std::vector<Range> level{{0, static_cast<Row>(n_), 0, 0}};
  std::vector<Subtree> subtrees;
  std::vector<Scratch> scratches(static_cast<std::size_t>(n_threads_));
  // Large ranges are split level by level, in parallel. Small ranges become subtrees.
  while (!level.empty()) {
    std::vector<Range> large;
    for (const Range& range : level) {
      if (range.end - range.begin <= subtree_size) {
        subtrees.push_back({range, {}, {}, {}});
      } else {
        large.push_back(range);
      }
    }
    std::vector<Row> middles(large.size());
    std::vector<std::vector<double>> measured(large.size(), std::vector<double>(2 * d_));
    parallel_for(large.size(), n_threads_, [&](std::size_t i, int thread) {
      find_box(large[i], measured[i].data());
      if (is_leaf(large[i], measured[i].data())) return;
      middles[i] = split(large[i], measured[i].data(), scratches[static_cast<std::size_t>(thread)]);
    });
    level.clear();
    for (std::size_t i = 0; i < large.size(); ++i) {
      const Range& range = large[i];
      if (middles[i] == 0) {  // all points are equal
        subtrees.push_back({range, {}, {}, {}});
        continue;
      }
      const std::size_t child = nodes.size();
      nodes[range.node].child = static_cast<std::uint32_t>(child);
      std::copy(measured[i].begin(), measured[i].end(),
                boxes.begin() + static_cast<std::ptrdiff_t>(2 * d_ * range.node));
      nodes.resize(child + 2);
      boxes.resize(2 * d_ * (child + 2));
      level.push_back({range.begin, middles[i], 1 - range.buffer, child});
      level.push_back({middles[i], range.end, 1 - range.buffer, child + 1});
    }
  }
  std::sort(subtrees.begin(), subtrees.end(),
            [](const Subtree& a, const Subtree& b) { return a.range.begin < b.range.begin; });
  parallel_for(subtrees.size(), n_threads_, [&](std::size_t i, int thread) {
    finish(subtrees[i], scratches[static_cast<std::size_t>(thread)]);
  });
  assemble(subtrees);
}

void KdBuilder::find_box(const Range& range, double* box) {
  const double* at = points(range.buffer) + std::size_t{range.begin} * d_;
  double* const low = box;
  double* const high = box + d_;
  std::copy(at, at + d_, low);
  std::copy(at, at + d_, high);
  for (Row i = range.begin; i < range.end; ++i, at += d_) {
    for (std::size_t j = 0; j < d_; ++j) {
      low[j] = at[j] < low[j] ? at[j] : low[j];
      high[j] = at[j] > high[j] ? at[j] : high[j];
    }
  }
}

bool KdBuilder::is_leaf(const Range& range, const double* box) const {
  return range.end - range.begin <= leaf_size_ || std::equal(box, box + d_, box + d_);
}

Row KdBuilder::split(const Range& range, const double* box, Scratch& scratch) {
  std::size_t widest = 0;
  for (std::size_t j = 1; j < d_; ++j) {
    // Halves, so that no width overflows.
    if (box[d_ + j] / 2 - box[j] / 2 > box[d_ + widest] / 2 - box[widest] / 2) widest = j;
  }
  const Row n = range.end - range.begin;
  const double* const from = points(range.buffer) + std::size_t{range.begin} * d_;
  std::vector<double>& keys = scratch.keys;
  keys.resize(std::max<std::size_t>(keys.size(), n));
  for (Row i = 0; i < n; ++i) keys[i] = from[i * d_ + widest];
  // Points below the threshold go left. For many points, the median of a sample is sufficient.
  std::vector<double>& sample = scratch.sample;
  if (n > sampled_from) {
    sample.resize(sample_size);
    const Row step = n / static_cast<Row>(sample_size);
    for (std::size_t i = 0; i < sample_size; ++i) {
      // A varying position within each step, so that periodic data give no biased sample.
      sample[i] = keys[i * step + (i * 2654435761U) % step];
    }
  } else {
    sample.assign(keys.begin(), keys.begin() + n);
  }
  const auto middle = sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2);
  std::nth_element(sample.begin(), middle, sample.end());
  double threshold = *middle;
  if (threshold == box[widest]) {  // no value is smaller: points with this value go left
    threshold = box[d_ + widest];
    for (Row i = 0; i < n; ++i) {
      if (keys[i] > box[widest] && keys[i] < threshold) threshold = keys[i];
    }
  }
  Row n_left = 0;
  for (Row i = 0; i < n; ++i) n_left += keys[i] < threshold ? 1 : 0;
  const int other = 1 - range.buffer;
  double* const to = points(other) + std::size_t{range.begin} * d_;
  const Row* const from_rows = rows(range.buffer) + range.begin;
  Row* const to_rows = rows(other) + range.begin;
  Row left = 0;
  Row right = n_left;
  for (Row i = 0; i < n; ++i) {
    const bool is_left = keys[i] < threshold;
    const Row to_index = is_left ? left : right;
    left += is_left ? 1 : 0;
    right += is_left ? 0 : 1;
    for (std::size_t j = 0; j < d_; ++j) to[to_index * d_ + j] = from[i * d_ + j];
    to_rows[to_index] = from_rows[i];
  }
  return range.begin + n_left;
}

void KdBuilder::fill_node(const Range& range, KdTree::Node& node) {
  node.n_points = range.end - range.begin;
  node.first = range.begin;
  const Row* const own = rows(range.buffer);
  node.smallest = own[range.begin];
  for (Row i = range.begin; i < range.end; ++i) node.smallest = std::min(node.smallest, own[i]);
}

// Column-major, padded to full vectors with points at infinity.
void KdBuilder::add_leaf(const Range& range, const double* box, KdTree::Node& node,
                         std::vector<double>& coordinates) {
  node.begin = coordinates.size();
  node.uniform = range.end - range.begin > 1 && std::equal(box, box + d_, box + d_);
  const Row n = node.uniform ? 1 : range.end - range.begin;
  const std::size_t width = kd_width(n);
  coordinates.resize(node.begin + width * d_, std::numeric_limits<double>::infinity());
  const double* const from = points(range.buffer) + std::size_t{range.begin} * d_;
  for (Row i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < d_; ++j) {
      coordinates[node.begin + j * width + i] = from[i * d_ + j];
    }
  }
  if (range.buffer != 0) {
    std::copy(rows(1) + range.begin, rows(1) + range.end, rows(0) + range.begin);
  }
}

void KdBuilder::finish(Subtree& subtree, Scratch& scratch) {
  subtree.nodes.resize(1);
  subtree.boxes.resize(2 * d_);
  std::vector<Range> stack{subtree.range};
  stack[0].node = 0;
  std::vector<double> box(2 * d_);
  while (!stack.empty()) {
    const Range range = stack.back();
    stack.pop_back();
    find_box(range, box.data());
    std::copy(box.begin(), box.end(),
              subtree.boxes.begin() + static_cast<std::ptrdiff_t>(2 * d_ * range.node));
    fill_node(range, subtree.nodes[range.node]);
    if (is_leaf(range, box.data())) {
      add_leaf(range, box.data(), subtree.nodes[range.node], subtree.coordinates);
      continue;
    }
    const Row middle = split(range, box.data(), scratch);
    const std::size_t child = subtree.nodes.size();
    subtree.nodes[range.node].child = static_cast<std::uint32_t>(child);
    subtree.nodes.resize(child + 2);
    subtree.boxes.resize(2 * d_ * (child + 2));
    stack.push_back({middle, range.end, 1 - range.buffer, child + 1});
    stack.push_back({range.begin, middle, 1 - range.buffer, child});
  }
}

void KdBuilder::assemble(std::vector<Subtree>& subtrees) {
  std::vector<std::size_t> first_node(subtrees.size());
  std::vector<std::size_t> first_coordinate(subtrees.size());
  std::size_t n_nodes = tree_.nodes_.size();
  std::size_t n_coordinates = 0;
  for (std::size_t i = 0; i < subtrees.size(); ++i) {
    first_node[i] = n_nodes - 1;  // the root of the subtree is already in the tree
    first_coordinate[i] = n_coordinates;
    n_nodes += subtrees[i].nodes.size() - 1;
    n_coordinates += subtrees[i].coordinates.size();
  }
  const std::size_t n_top = tree_.nodes_.size();
  tree_.nodes_.resize(n_nodes);
  tree_.boxes_.resize(2 * d_ * n_nodes);
  tree_.coordinates_.resize(n_coordinates);
  parallel_for(subtrees.size(), n_threads_, [&](std::size_t i, int) {
    Subtree& subtree = subtrees[i];
    for (std::size_t k = 0; k < subtree.nodes.size(); ++k) {
      KdTree::Node node = subtree.nodes[k];
      if (node.child != 0) node.child += static_cast<std::uint32_t>(first_node[i]);
      node.begin += first_coordinate[i];
      const std::size_t at = k == 0 ? subtree.range.node : first_node[i] + k;
      tree_.nodes_[at] = node;
      std::copy_n(subtree.boxes.begin() + static_cast<std::ptrdiff_t>(2 * d_ * k), 2 * d_,
                  tree_.boxes_.begin() + static_cast<std::ptrdiff_t>(2 * d_ * at));
    }
    std::copy(subtree.coordinates.begin(), subtree.coordinates.end(),
              tree_.coordinates_.data() + first_coordinate[i]);
    subtree = Subtree();
  });
  tree_.order_ = std::move(first_rows_);
  // The nodes above the subtrees, in reverse order: children follow their parents.
  for (std::size_t i = n_top; i-- > 0;) {
    KdTree::Node& node = tree_.nodes_[i];
    if (node.n_points != 0) continue;
    const KdTree::Node& left = tree_.nodes_[node.child];
    const KdTree::Node& right = tree_.nodes_[node.child + 1];
    node.n_points = left.n_points + right.n_points;
    node.first = left.first;
    node.smallest = std::min(left.smallest, right.smallest);
  }
}

}  // namespace spinney::neighbors
