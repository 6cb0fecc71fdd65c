#include "spinney/boosting/bit_scorer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "spinney/common/dispatch.h"

namespace spinney {
namespace {

template <class Number, class Bits>
void cross_out_categories(const Number* values, const std::uint32_t* left, bool missing_left,
                          Bits if_right, std::size_t n, Bits* leaves) {
  for (std::size_t i = 0; i < n; ++i) {
    bool goes_left = missing_left;
    if (!std::isnan(values[i])) {
      const auto code = static_cast<std::size_t>(values[i]);
      goes_left = ((left[code / 32] >> (code % 32)) & 1) != 0;
    }
    if (!goes_left) leaves[i] &= if_right;
  }
}

// Bits of the leaves below a node or leaf; calls body(node, those of its left side) on the way.
template <class Body>
std::uint64_t leaves_below(const CompactTree& tree, std::int32_t name, const Body& body) {
  if (name < 0) return std::uint64_t{1} << ~name;
  const auto node = static_cast<std::size_t>(name);
  const std::uint64_t left = leaves_below(tree, tree.nodes[node].child[0], body);
  body(node, left);
  return left | leaves_below(tree, tree.nodes[node].child[1], body);
}

}  // namespace

namespace {

template <class Question, class Number, class Bits>
SPINNEY_INLINE void cross_out_numbers(const Question* begin, const Question* end,
                                      const Number* values, std::size_t n, Bits* leaves) {
  constexpr Bits all = ~Bits{0};
  for (const Question* question = begin; question < end; ++question) {
    const Number* const of = values + question->column * BitScorer::block_rows;
    const auto threshold = static_cast<Number>(question->threshold);
    const auto if_right = static_cast<Bits>(question->if_right);
    if (question->missing_left) {  // NaN is not beyond the threshold …
      for (std::size_t i = 0; i < n; ++i) leaves[i] &= of[i] > threshold ? if_right : all;
    } else {  // … nor at or below it
      for (std::size_t i = 0; i < n; ++i) leaves[i] &= of[i] <= threshold ? all : if_right;
    }
  }
}

}  // namespace

SPINNEY_KERNEL void BitScorer::cross_out(const Question* begin, const Question* end,
                                         const double* values, std::size_t n,
                                         std::uint64_t* leaves) {
  cross_out_numbers(begin, end, values, n, leaves);
}

SPINNEY_KERNEL void BitScorer::cross_out(const Question* begin, const Question* end,
                                         const float* values, std::size_t n,
                                         std::uint32_t* leaves) {
  cross_out_numbers(begin, end, values, n, leaves);
}

bool BitScorer::serves(const Forest& forest, std::size_t first, std::size_t last) {
  return std::all_of(forest.trees.begin() + static_cast<std::ptrdiff_t>(first),
                     forest.trees.begin() + static_cast<std::ptrdiff_t>(last),
                     [](const CompactTree& tree) { return tree.n_leaves() <= max_leaves; });
}

BitScorer::BitScorer(const Forest& forest, std::size_t first, std::size_t last) : first_(first) {
  std::vector<std::int32_t> place(forest.n_features(), -1);
  for (std::size_t t = first; t < last; ++t) {
    for (const CompactNode& node : forest.trees[t].nodes) {
      place[node.feature & CompactNode::feature_mask] = 0;
    }
  }
  for (std::uint32_t f = 0; f < place.size(); ++f) {
    if (place[f] < 0) continue;
    place[f] = static_cast<std::int32_t>(columns_.size());
    columns_.push_back(f);
  }
  for (std::size_t t = first; t < last; ++t) {
    const CompactTree& tree = forest.trees[t];
    narrow_ &= tree.thresholds.empty() && tree.n_leaves() <= 32;
    Scored scored{questions_.size(), 0, 0, tree.values.data()};
    if (!tree.nodes.empty()) {
      leaves_below(tree, 0, [&](std::size_t index, std::uint64_t left) {
        const CompactNode& node = tree.nodes[index];
        const bool categorical = (node.feature & CompactNode::categorical_flag) != 0;
        Question question;
        question.column =
            static_cast<std::uint32_t>(place[node.feature & CompactNode::feature_mask]);
        question.missing_left = (node.feature & CompactNode::missing_left_flag) != 0;
        question.categories =
            categorical ? tree.category_bits.data() + std::bit_cast<std::uint32_t>(node.threshold)
                        : nullptr;
        question.threshold =
            tree.thresholds.empty() ? static_cast<double>(node.threshold) : tree.thresholds[index];
        question.if_right = ~left;
        questions_.push_back(question);
      });
    }
    scored.end = questions_.size();
    // Their order does not matter: numbers first, column by column, whose values are in the cache.
    const auto begin = questions_.begin() + static_cast<std::ptrdiff_t>(scored.begin);
    std::stable_sort(begin, questions_.end(), [](const Question& a, const Question& b) {
      const bool number_a = a.categories == nullptr;
      const bool number_b = b.categories == nullptr;
      return number_a != number_b ? number_a : a.column < b.column;
    });
    scored.categories = static_cast<std::size_t>(
        std::find_if(begin, questions_.end(),
                     [](const Question& question) { return question.categories != nullptr; }) -
        questions_.begin());
    trees_.push_back(scored);
  }
}

template <class Number, class Bits, class Value>
void BitScorer::add_as(const Value* rows, std::size_t stride, std::size_t n, std::size_t n_scores,
                       double* out) const {
  // Column by column, so that a question reads its values side by side.
  std::vector<Number> values(columns_.size() * block_rows);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Value* const of = rows + columns_[c];
    Number* const to = values.data() + c * block_rows;
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<Number>(of[i * stride]);
  }
  Bits leaves[block_rows];
  const Question* const questions = questions_.data();
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    const Scored& tree = trees_[t];
    std::fill(leaves, leaves + n, ~Bits{0});
    cross_out(questions + tree.begin, questions + tree.categories, values.data(), n, leaves);
    for (std::size_t q = tree.categories; q < tree.end; ++q) {
      cross_out_categories(values.data() + questions[q].column * block_rows,
                           questions[q].categories, questions[q].missing_left,
                           static_cast<Bits>(questions[q].if_right), n, leaves);
    }
    double* const to = out + (first_ + t) % n_scores;
    for (std::size_t i = 0; i < n; ++i) {
      to[i * n_scores] += tree.values[std::countr_zero(leaves[i])];
    }
  }
}

template <class Value>
void BitScorer::add(const Value* rows, std::size_t stride, std::size_t n, std::size_t n_scores,
                    double* out) const {
  if constexpr (std::is_same_v<Value, float>) {
    if (narrow_) {
      add_as<float, std::uint32_t>(rows, stride, n, n_scores, out);
      return;
    }
  }
  add_as<double, std::uint64_t>(rows, stride, n, n_scores, out);
}

template void BitScorer::add(const float*, std::size_t, std::size_t, std::size_t, double*) const;
template void BitScorer::add(const double*, std::size_t, std::size_t, std::size_t, double*) const;

}  // namespace spinney
