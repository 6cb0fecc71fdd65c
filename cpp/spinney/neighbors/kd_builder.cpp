#include "spinney/neighbors/kd_builder.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "spinney/common/parallel.h"

namespace spinney::neighbors {

using common::parallel_for;
using common::Row;

namespace {

constexpr Row piece_size = 8192;    // points that one thread divides alone
constexpr Row sampled_from = 4096;  // points of which the median is guessed from a sample
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
  std::vector<Piece> pieces;
  std::vector<Scratch> scratches(static_cast<std::size_t>(n_threads_));
  // Large ranges level by level, threads side by side; what is small enough becomes a piece.
  while (!level.empty()) {
    std::vector<Range> large;
    for (const Range& range : level) {
      if (range.end - range.begin <= piece_size) {
        pieces.push_back({range, {}, {}, {}});
      } else {
        large.push_back(range);
      }
    }
    std::vector<Row> middles(large.size());
    std::vector<std::vector<double>> measured(large.size(), std::vector<double>(2 * d_));
    parallel_for(large.size(), n_threads_, [&](std::size_t i, int thread) {
      measure(large[i], measured[i].data());
      if (is_leaf(large[i], measured[i].data())) return;
      middles[i] =
          divide(large[i], measured[i].data(), scratches[static_cast<std::size_t>(thread)]);
    });
    level.clear();
    for (std::size_t i = 0; i < large.size(); ++i) {
      const Range& range = large[i];
      if (middles[i] == 0) {  // one point many times
        pieces.push_back({range, {}, {}, {}});
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
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.range.begin < b.range.begin; });
  parallel_for(pieces.size(), n_threads_, [&](std::size_t i, int thread) {
    finish(pieces[i], scratches[static_cast<std::size_t>(thread)]);
  });
  assemble(pieces);
}

void KdBuilder::measure(const Range& range, double* box) {
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

Row KdBuilder::divide(const Range& range, const double* box, Scratch& scratch) {
  std::size_t widest = 0;
  for (std::size_t j = 1; j < d_; ++j) {
    // Halves, so that no width is infinite.
    if (box[d_ + j] / 2 - box[j] / 2 > box[d_ + widest] / 2 - box[widest] / 2) widest = j;
  }
  const Row n = range.end - range.begin;
  const double* const from = points(range.buffer) + std::size_t{range.begin} * d_;
  std::vector<double>& keys = scratch.keys;
  keys.resize(std::max<std::size_t>(keys.size(), n));
  for (Row i = 0; i < n; ++i) keys[i] = from[i * d_ + widest];
  // The cut: left is what is smaller. Near the median is near enough where points are many.
  std::vector<double>& sample = scratch.sample;
  if (n > sampled_from) {
    sample.resize(sample_size);
    const Row step = n / static_cast<Row>(sample_size);
    for (std::size_t i = 0; i < sample_size; ++i) {
      // Anywhere within each step, so that regular data do not fool it.
      sample[i] = keys[i * step + (i * 2654435761U) % step];
    }
  } else {
    sample.assign(keys.begin(), keys.begin() + n);
  }
  const auto middle = sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2);
  std::nth_element(sample.begin(), middle, sample.end());
  double cut = *middle;
  if (cut == box[widest]) {  // nothing is smaller: left is what equals it, up to the next value
    cut = box[d_ + widest];
    for (Row i = 0; i < n; ++i) {
      if (keys[i] > box[widest] && keys[i] < cut) cut = keys[i];
    }
  }
  Row n_left = 0;
  for (Row i = 0; i < n; ++i) n_left += keys[i] < cut ? 1 : 0;
  const int other = 1 - range.buffer;
  double* const to = points(other) + std::size_t{range.begin} * d_;
  const Row* const from_rows = rows(range.buffer) + range.begin;
  Row* const to_rows = rows(other) + range.begin;
  Row left = 0;
  Row right = n_left;
  for (Row i = 0; i < n; ++i) {
    const bool is_left = keys[i] < cut;
    const Row place = is_left ? left : right;
    left += is_left ? 1 : 0;
    right += is_left ? 0 : 1;
    for (std::size_t j = 0; j < d_; ++j) to[place * d_ + j] = from[i * d_ + j];
    to_rows[place] = from_rows[i];
  }
  return range.begin + n_left;
}

void KdBuilder::describe(const Range& range, KdTree::Node& node) {
  node.n_points = range.end - range.begin;
  node.first = range.begin;
  const Row* const own = rows(range.buffer);
  node.smallest = own[range.begin];
  for (Row i = range.begin; i < range.end; ++i) node.smallest = std::min(node.smallest, own[i]);
}

// Coordinate by coordinate, padded to full vectors with points that are infinitely far.
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

void KdBuilder::finish(Piece& piece, Scratch& scratch) {
  piece.nodes.resize(1);
  piece.boxes.resize(2 * d_);
  std::vector<Range> stack{piece.range};
  stack[0].node = 0;
  std::vector<double> box(2 * d_);
  while (!stack.empty()) {
    const Range range = stack.back();
    stack.pop_back();
    measure(range, box.data());
    std::copy(box.begin(), box.end(),
              piece.boxes.begin() + static_cast<std::ptrdiff_t>(2 * d_ * range.node));
    describe(range, piece.nodes[range.node]);
    if (is_leaf(range, box.data())) {
      add_leaf(range, box.data(), piece.nodes[range.node], piece.coordinates);
      continue;
    }
    const Row middle = divide(range, box.data(), scratch);
    const std::size_t child = piece.nodes.size();
    piece.nodes[range.node].child = static_cast<std::uint32_t>(child);
    piece.nodes.resize(child + 2);
    piece.boxes.resize(2 * d_ * (child + 2));
    stack.push_back({middle, range.end, 1 - range.buffer, child + 1});
    stack.push_back({range.begin, middle, 1 - range.buffer, child});
  }
}

void KdBuilder::assemble(std::vector<Piece>& pieces) {
  std::vector<std::size_t> first_node(pieces.size());
  std::vector<std::size_t> first_coordinate(pieces.size());
  std::size_t n_nodes = tree_.nodes_.size();
  std::size_t n_coordinates = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    first_node[i] = n_nodes - 1;  // its first node has a place above
    first_coordinate[i] = n_coordinates;
    n_nodes += pieces[i].nodes.size() - 1;
    n_coordinates += pieces[i].coordinates.size();
  }
  const std::size_t n_top = tree_.nodes_.size();
  tree_.nodes_.resize(n_nodes);
  tree_.boxes_.resize(2 * d_ * n_nodes);
  tree_.coordinates_.resize(n_coordinates);
  parallel_for(pieces.size(), n_threads_, [&](std::size_t i, int) {
    Piece& piece = pieces[i];
    for (std::size_t k = 0; k < piece.nodes.size(); ++k) {
      KdTree::Node node = piece.nodes[k];
      if (node.child != 0) node.child += static_cast<std::uint32_t>(first_node[i]);
      node.begin += first_coordinate[i];
      const std::size_t at = k == 0 ? piece.range.node : first_node[i] + k;
      tree_.nodes_[at] = node;
      std::copy_n(piece.boxes.begin() + static_cast<std::ptrdiff_t>(2 * d_ * k), 2 * d_,
                  tree_.boxes_.begin() + static_cast<std::ptrdiff_t>(2 * d_ * at));
    }
    std::copy(piece.coordinates.begin(), piece.coordinates.end(),
              tree_.coordinates_.data() + first_coordinate[i]);
    piece = Piece();
  });
  tree_.order_ = std::move(first_rows_);
  // What lies above the pieces, from the bottom: children come after their parents.
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
