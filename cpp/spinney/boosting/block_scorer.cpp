#include "spinney/boosting/block_scorer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "spinney/common/dispatch.h"

namespace spinney {
namespace {

constexpr std::size_t block = BlockScorer::block_rows;
constexpr std::uint32_t missing_category = ~std::uint32_t{0};

double threshold_of(const CompactTree& tree, std::size_t node) {
  return tree.thresholds.empty() ? static_cast<double>(tree.nodes[node].threshold)
                                 : tree.thresholds[node];
}

bool is_categorical(const CompactNode& node) {
  return (node.feature & CompactNode::categorical_flag) != 0;
}

std::size_t column_of(const CompactNode& node) { return node.feature & CompactNode::feature_mask; }

// Thresholds of each feature in the trees [first, last), ascending.
std::vector<std::vector<double>> find_thresholds(const Forest& forest, std::size_t first,
                                                 std::size_t last) {
  std::vector<std::vector<double>> found(forest.n_features());
  for (std::size_t t = first; t < last; ++t) {
    const CompactTree& tree = forest.trees[t];
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      if (!is_categorical(tree.nodes[i])) {
        found[column_of(tree.nodes[i])].push_back(threshold_of(tree, i));
      }
    }
  }
  for (std::vector<double>& thresholds : found) {
    std::sort(thresholds.begin(), thresholds.end());
    thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
  }
  return found;
}

SPINNEY_INLINE void ask_number(const std::uint8_t* codes, std::uint8_t place, std::uint8_t to_right,
                               std::uint8_t shift, std::uint8_t last_left, std::uint8_t* at) {
  for (std::size_t i = 0; i < block; ++i) {
    const auto code = static_cast<std::uint8_t>(codes[i] - shift);
    const std::uint8_t step = code <= last_left ? std::uint8_t{1} : to_right;
    at[i] = static_cast<std::uint8_t>(at[i] + (at[i] == place ? step : std::uint8_t{0}));
  }
}

}  // namespace

SPINNEY_KERNEL void BlockScorer::walk(const Question* begin, const Question* end,
                                      const std::uint8_t* codes, const std::uint32_t* categories,
                                      std::uint8_t* at) {
  for (const Question* question = begin; question < end; ++question) {
    if (question->categories == nullptr) {
      ask_number(codes + question->column * block, question->place, question->to_right,
                 question->shift, question->last_left, at);
      continue;
    }
    const std::uint32_t* const of = categories + question->column * block;
    for (std::size_t i = 0; i < block; ++i) {
      if (at[i] != question->place) continue;
      const bool left = of[i] == missing_category
                            ? question->shift == 0
                            : ((question->categories[of[i] / 32] >> (of[i] % 32)) & 1) != 0;
      at[i] = static_cast<std::uint8_t>(at[i] + (left ? 1 : question->to_right));
    }
  }
}

bool BlockScorer::serves(const Forest& forest, std::size_t first, std::size_t last,
                         std::size_t n_rows) {
  if (forest.shape.width() > 1) return false;
  std::size_t questions = 0;
  for (std::size_t t = first; t < last; ++t) {
    if (forest.trees[t].n_leaves() > max_leaves) return false;
    questions += forest.trees[t].nodes.size();
  }
  // Sorting the thresholds costs about as much as sending a few rows down every tree.
  if (n_rows < 32 || n_rows * (last - first) < 8 * questions) return false;
  const auto thresholds = find_thresholds(forest, first, last);
  return std::all_of(thresholds.begin(), thresholds.end(),
                     [](const std::vector<double>& of) { return of.size() < 255; });
}

BlockScorer::BlockScorer(const Forest& forest, std::size_t first, std::size_t last)
    : first_(first) {
  const std::vector<std::vector<double>> thresholds = find_thresholds(forest, first, last);
  std::vector<std::int32_t> place(forest.n_features(), -1);
  for (std::size_t t = first; t < last; ++t) {
    for (const CompactNode& node : forest.trees[t].nodes) place[column_of(node)] = 0;
  }
  for (std::uint32_t f = 0; f < place.size(); ++f) {
    if (place[f] < 0) continue;
    place[f] = static_cast<std::int32_t>(columns_.size());
    const auto n_categories = static_cast<std::uint32_t>(forest.n_categories[f]);
    columns_.push_back({f, n_categories, static_cast<std::int32_t>(searches_.size())});
    if (n_categories == 0) searches_.emplace_back(thresholds[f]);
  }
  for (std::size_t t = first; t < last; ++t) {
    const CompactTree& tree = forest.trees[t];
    const std::size_t begin = questions_.size();
    const std::size_t n_places = tree.nodes.size() + tree.n_leaves();
    trees_.push_back({begin, begin + tree.nodes.size(), values_.size()});
    values_.resize(values_.size() + n_places);
    double* const values = values_.data() + trees_.back().values;
    // Places in pre-order; a question learns where its right side begins when its left side ends.
    const auto number = [&](const auto& self, std::int32_t name, std::size_t at) -> std::size_t {
      if (name < 0) {
        values[at] = tree.values[static_cast<std::size_t>(~name)];
        return at + 1;
      }
      const auto index = static_cast<std::size_t>(name);
      const CompactNode& node = tree.nodes[index];
      const std::size_t f = column_of(node);
      Question question{};
      question.column = static_cast<std::uint32_t>(place[f]);
      question.place = static_cast<std::uint8_t>(at);
      question.shift = (node.feature & CompactNode::missing_left_flag) != 0 ? 0 : 1;
      if (is_categorical(node)) {
        question.categories =
            tree.category_bits.data() + std::bit_cast<std::uint32_t>(node.threshold);
      } else {
        const auto found =
            std::lower_bound(thresholds[f].begin(), thresholds[f].end(), threshold_of(tree, index));
        // Codes of numbers begin at 1: it is the first threshold's left side.
        question.last_left =
            static_cast<std::uint8_t>(found - thresholds[f].begin() + 1 - question.shift);
      }
      const std::size_t mine = questions_.size();
      questions_.push_back(question);
      const std::size_t right = self(self, node.child[0], at + 1);
      questions_[mine].to_right = static_cast<std::uint8_t>(right - at);
      return self(self, node.child[1], right);
    };
    number(number, tree.nodes.empty() ? ~0 : 0, 0);
  }
}

template <class Value>
void BlockScorer::encode(const Value* rows, std::size_t stride, std::size_t n, std::uint8_t* codes,
                         std::uint32_t* categories) const {
  double values[block];
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Asked& asked = columns_[c];
    const Value* const of = rows + asked.feature;
    if (asked.n_categories > 0) {
      std::uint32_t* const to = categories + c * block;
      for (std::size_t i = 0; i < n; ++i) {
        const Value value = of[i * stride];
        to[i] = std::isnan(value) ? missing_category : static_cast<std::uint32_t>(value);
      }
      continue;
    }
    std::uint8_t* const to = codes + c * block;
    bool misses = false;
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = static_cast<double>(of[i * stride]);
      misses |= std::isnan(values[i]);
    }
    count_below(values, n, searches_[static_cast<std::size_t>(asked.search)], to);
    for (std::size_t i = 0; i < n; ++i) ++to[i];
    if (!misses) continue;
    for (std::size_t i = 0; i < n; ++i) {
      if (std::isnan(values[i])) to[i] = 0;
    }
  }
}

template <class Value>
void BlockScorer::add(const Value* rows, std::size_t stride, std::size_t n, std::size_t n_scores,
                      double* out) const {
  std::vector<std::uint8_t> codes(columns_.size() * block);
  const bool any_categories = searches_.size() < columns_.size();
  std::vector<std::uint32_t> categories(any_categories ? columns_.size() * block : 0);
  encode(rows, stride, n, codes.data(), categories.data());
  alignas(64) std::uint8_t at[block];
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    const Scored& tree = trees_[t];
    std::fill(at, at + block, std::uint8_t{0});
    walk(questions_.data() + tree.begin, questions_.data() + tree.end, codes.data(),
         categories.data(), at);
    const double* const values = values_.data() + tree.values;
    double* const to = out + (first_ + t) % n_scores;
    for (std::size_t i = 0; i < n; ++i) to[i * n_scores] += values[at[i]];
  }
}

template void BlockScorer::add(const float*, std::size_t, std::size_t, std::size_t, double*) const;
template void BlockScorer::add(const double*, std::size_t, std::size_t, std::size_t, double*) const;

}  // namespace spinney
