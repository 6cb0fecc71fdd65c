#include "spinney/serving/block_scorer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "spinney/common/dispatch.h"
#include "spinney/common/large_array.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace spinney::serving {

namespace {

constexpr std::size_t block = BlockScorer::block_rows;
constexpr std::size_t vector_rows = 64;
constexpr std::size_t n_vectors = 4;  // whose places can stay in registers throughout a tree
constexpr std::size_t together = n_vectors * vector_rows;  // a block is filled up to so many rows
constexpr std::size_t piece_rows = 128;                    // that are coded together
constexpr std::size_t piece_columns = 8;
constexpr std::size_t side_by_side = 4;  // trees whose values are added in one reading
constexpr std::size_t in_flight = 8;     // rows that go down side by side
constexpr std::size_t most_leaves = 4096;
constexpr std::size_t most_levels = 64;     // of trees that are not asked as a whole
constexpr std::size_t most_answers = 4096;  // of a batch: they should stay in the nearer caches
static_assert(block == RowBits::n_rows);
constexpr std::uint32_t missing_category = ~std::uint32_t{0};

// Nanoseconds a row, measured: they only decide between ways to the same answer.
constexpr double asking = 0.015;     // a question
constexpr double choosing = 0.0015;  // between answers that are bits, and answering
constexpr double placing = 0.02;     // a level of bits
constexpr double stepping = 1.0;     // a level below the first ones
constexpr double coding = 1.5;       // a value
constexpr double descending = 10;    // a tree, by values

double threshold_of(const forest::CompactTree& tree, std::size_t node) {
  return tree.thresholds.empty() ? static_cast<double>(tree.nodes[node].threshold)
                                 : tree.thresholds[node];
}

bool is_categorical(const forest::CompactNode& node) {
  return (node.feature & forest::CompactNode::categorical_flag) != 0;
}

std::size_t column_of(const forest::CompactNode& node) {
  return node.feature & forest::CompactNode::feature_mask;
}

// How many of the ascending values are below one; without branches, which would be guessed wrong.
std::size_t count_smaller(const std::vector<double>& values, double one) {
  const double* from = values.data();
  std::size_t n = values.size();
  for (; n > 1; n -= n / 2) from += static_cast<std::size_t>(from[n / 2 - 1] < one) * (n / 2);
  return static_cast<std::size_t>(from - values.data()) + (n == 1 && *from < one ? 1 : 0);
}

// Questions of each level; parents come before their children.
std::vector<std::size_t> count_levels(const forest::CompactTree& tree) {
  std::vector<std::uint16_t> level(tree.nodes.size());
  std::vector<std::size_t> count;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (level[i] == count.size()) count.push_back(0);
    ++count[level[i]];
    for (const std::int32_t child : tree.nodes[i].child) {
      if (child >= 0) {
        level[static_cast<std::size_t>(child)] = static_cast<std::uint16_t>(level[i] + 1);
      }
    }
  }
  return count;
}

// How the first levels are asked of all rows.
struct Levels {
  std::size_t n;
  bool by_bits;
};

Levels choose_levels(const forest::CompactTree& tree, const std::vector<std::size_t>& of_level,
                     bool may_use_bits) {
  const std::size_t n_levels = of_level.size();
  const bool whole = tree.n_leaves() <= BlockScorer::max_exits;
  if (whole && !tree.category_bits.empty()) return {n_levels, false};
  Levels best{0, false};
  double least = stepping * static_cast<double>(n_levels);
  const auto consider = [&](std::size_t n, bool by_bits, double cost) {
    cost += stepping * static_cast<double>(n_levels - n);
    if (cost >= least) return;
    least = cost;
    best = {n, by_bits};
  };
  std::size_t asked = 0;
  for (std::size_t n = 1; n <= n_levels; ++n) {
    asked += of_level[n - 1];
    if (asked >= BlockScorer::max_exits) break;
    consider(n, false, asking * static_cast<double>(asked));
  }
  if (!may_use_bits) return best;
  for (std::size_t n = 1; n <= std::min(n_levels, RowBits::max_levels); ++n) {
    const std::size_t places = std::size_t{1} << n;
    if (places > 4 * tree.n_leaves()) break;  // they take memory, too
    consider(n, true, choosing * static_cast<double>(places) + placing * static_cast<double>(n));
  }
  return best;
}

// Of n rows, a multiple of `together`.
SPINNEY_INLINE void ask_number(const std::uint8_t* __restrict codes, std::uint8_t place,
                               std::uint8_t right, std::uint8_t last_left, std::size_t n,
                               std::uint8_t* __restrict at) {
  for (std::size_t first = 0; first < n; first += vector_rows) {
    for (std::size_t i = first; i < first + vector_rows; ++i) {
      const bool moves = (at[i] == place) & (codes[i] > last_left);
      at[i] = moves ? right : at[i];
    }
  }
}

}  // namespace

// Thresholds of each feature in the trees of a chunk, ascending, and its columns.
struct BlockScorer::Cuts {
  std::vector<std::vector<double>> of_feature;
  std::vector<std::int32_t> column;   // among those asked about; -1 for none
  std::vector<std::uint32_t> answer;  // numbers in a batch, by lane and last code; 0 for none yet

  explicit Cuts(std::size_t n_features) : of_feature(n_features), column(n_features, -1) {}

  // Whether there is room for the tree's thresholds; takes them in if so.
  bool take(const forest::CompactTree& tree) {
    std::vector<std::pair<std::size_t, double>> added;
    bool fits = true;
    for (std::size_t i = 0; i < tree.nodes.size() && fits; ++i) {
      if (is_categorical(tree.nodes[i])) continue;
      const std::size_t feature = column_of(tree.nodes[i]);
      std::vector<double>& cuts = of_feature[feature];
      const double threshold = threshold_of(tree, i);
      const std::size_t at = count_smaller(cuts, threshold);
      if (at < cuts.size() && cuts[at] == threshold) continue;
      fits = cuts.size() < max_cuts;
      if (!fits) break;
      cuts.insert(cuts.begin() + static_cast<std::ptrdiff_t>(at), threshold);
      added.emplace_back(feature, threshold);
    }
    if (!fits) {
      for (const auto& [feature, threshold] : added) {
        std::vector<double>& cuts = of_feature[feature];
        cuts.erase(std::lower_bound(cuts.begin(), cuts.end(), threshold));
      }
      return false;
    }
    for (const forest::CompactNode& node : tree.nodes) column[column_of(node)] = 0;
    return true;
  }
};

// out[i]: codes[i], or 255 where the value is missing.
SPINNEY_KERNEL static void raise_missing(const double* __restrict values, std::size_t n,
                                         const std::uint8_t* __restrict codes,
                                         std::uint8_t* __restrict out) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = static_cast<std::uint8_t>(codes[i] | (values[i] != values[i] ? 255 : 0));
  }
}

// Questions about numbers, of n rows, a multiple of `together`.
SPINNEY_KERNEL void BlockScorer::ask(const Question* begin, const Question* end,
                                     const std::uint8_t* codes, std::size_t n, std::uint8_t* at) {
  for (const Question* question = begin; question < end; ++question) {
    ask_number(codes + question->lane * block, question->place, question->right,
               question->last_left, n, at);
  }
}

#if defined(__x86_64__) && defined(__GNUC__)
// The same, by hand: the compiler writes places to memory after every question.
__attribute__((target("avx512bw"))) void BlockScorer::ask_in_registers(const Question* begin,
                                                                       const Question* end,
                                                                       const std::uint8_t* codes,
                                                                       std::size_t n,
                                                                       std::uint8_t* at) {
  for (std::size_t first = 0; first < n; first += together) {
    __m512i places[n_vectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < n_vectors; ++v) {
      places[v] = _mm512_loadu_si512(at + first + v * vector_rows);
    }
    for (const Question* question = begin; question < end; ++question) {
      const std::uint8_t* const of = codes + question->lane * block + first;
      const __m512i place = _mm512_set1_epi8(static_cast<char>(question->place));
      const __m512i last_left = _mm512_set1_epi8(static_cast<char>(question->last_left));
      const __m512i right = _mm512_set1_epi8(static_cast<char>(question->right));
#pragma GCC unroll 8
      for (std::size_t v = 0; v < n_vectors; ++v) {
        const __mmask64 here = _mm512_cmpeq_epi8_mask(places[v], place);
        const __mmask64 moves =
            _mm512_mask_cmpgt_epu8_mask(here, _mm512_loadu_si512(of + v * vector_rows), last_left);
        places[v] = _mm512_mask_mov_epi8(places[v], moves, right);
      }
    }
#pragma GCC unroll 8
    for (std::size_t v = 0; v < n_vectors; ++v) {
      _mm512_storeu_si512(at + first + v * vector_rows, places[v]);
    }
  }
}
#endif

void BlockScorer::walk(const Question* begin, const Question* end, const std::uint8_t* codes,
                       const std::uint32_t* categories, std::size_t n, std::uint8_t* at) {
  auto* ask_all = ask;
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool wide = __builtin_cpu_supports("avx512bw") != 0;
  if (wide) ask_all = ask_in_registers;
#endif
  for (const Question* question = begin; question < end;) {
    if (question->categories == nullptr) {
      const Question* last = question + 1;
      while (last < end && last->categories == nullptr) ++last;
      ask_all(question, last, codes, n, at);
      question = last;
      continue;
    }
    const std::uint32_t* const of = categories + question->lane / 2 * block;
    for (std::size_t i = 0; i < n; ++i) {
      if (at[i] != question->place) continue;
      const bool left = of[i] == missing_category
                            ? question->lane % 2 == 0
                            : ((question->categories[of[i] / 32] >> (of[i] % 32)) & 1) != 0;
      if (!left) at[i] = question->right;
    }
    ++question;
  }
}

bool BlockScorer::serves(const forest::Forest& forest, std::size_t first, std::size_t last,
                         std::size_t n_rows) {
  if (forest.shape.width() > 1 || n_rows < 32) return false;
  std::size_t questions = 0;
  for (std::size_t t = first; t < last; ++t) questions += forest.trees[t].nodes.size();
  // Sorting the thresholds costs about as much as sending a few rows down every tree.
  if (n_rows * (last - first) < 8 * questions) return false;
  for (std::size_t t = first; t < last; ++t) {
    const forest::CompactTree& tree = forest.trees[t];
    if (tree.n_leaves() <= max_exits) continue;
    if (tree.n_leaves() > most_leaves || !tree.category_bits.empty()) return false;
    if (count_levels(tree).size() > most_levels) return false;
    std::vector<std::uint32_t> asked(forest.n_features());
    for (const forest::CompactNode& node : tree.nodes) {
      if (++asked[column_of(node)] > max_cuts) return false;
    }
  }
  return true;
}

BlockScorer::BlockScorer(const forest::Forest& forest, std::size_t first, std::size_t last,
                         bool may_use_bits)
    : first_(first), may_use_bits_(may_use_bits) {
  for (std::size_t begin = first; begin < last;) {
    Cuts cuts(forest.n_features());
    std::size_t end = begin;
    while (end < last && cuts.take(forest.trees[end])) ++end;
    Chunk chunk{begin - first, end - first, {}, {}, {}};
    for (std::uint32_t f = 0; f < cuts.column.size(); ++f) {
      if (cuts.column[f] < 0) continue;
      cuts.column[f] = static_cast<std::int32_t>(chunk.columns.size());
      const auto n_categories = static_cast<std::uint32_t>(forest.n_categories[f]);
      chunk.columns.push_back({f, n_categories, static_cast<std::int32_t>(chunk.searches.size())});
      any_categories_ |= n_categories > 0;
      if (n_categories == 0) chunk.searches.emplace_back(cuts.of_feature[f]);
    }
    most_columns_ = std::max(most_columns_, chunk.columns.size());
    for (std::size_t t = begin; t < end; ++t) add_tree(forest.trees[t], cuts, chunk);
    for (Batch& batch : chunk.batches) {
      std::erase_if(batch.of_lane, [](const auto& lane) { return lane.second.empty(); });
      most_answers_ = std::max(most_answers_, batch.n_answers);
    }
    chunks_.push_back(std::move(chunk));
    begin = end;
  }
}

void BlockScorer::add_tree(const forest::CompactTree& tree, Cuts& cuts, Chunk& chunk) {
  const std::vector<std::size_t> of_level = count_levels(tree);
  const Levels levels = choose_levels(tree, of_level, may_use_bits_);
  const std::size_t n_asked = levels.n;
  const bool by_bits = levels.by_bits;
  const std::size_t n_steps = of_level.size() - n_asked;
  if (chunk.batches.empty() ||
      (by_bits && chunk.batches.back().n_answers + tree.nodes.size() > most_answers)) {
    chunk.batches.push_back({trees_.size(), trees_.size(), 1, {}});
    for (std::uint32_t lane = 0; lane < 2 * chunk.columns.size(); ++lane) {
      chunk.batches.back().of_lane.emplace_back(lane, std::vector<RowBits::Question>());
    }
    cuts.answer.assign(2 * chunk.columns.size() * (max_cuts + 1), 0);
  }
  Batch& batch = chunk.batches.back();
  Scored scored{questions_.size(), 0,       values_.size(),        steps_.size(),
                exits_.size(),     n_steps, by_bits ? n_asked : 0, asked_.size()};
  std::size_t n_exits = 0;
  // The lane and the last code that goes left.
  const auto question_of = [&](std::size_t index) -> std::pair<std::uint32_t, std::uint8_t> {
    const forest::CompactNode& node = tree.nodes[index];
    const std::size_t f = column_of(node);
    const std::uint32_t missing_right =
        (node.feature & forest::CompactNode::missing_left_flag) != 0 ? 0 : 1;
    const std::uint32_t lane = 2 * static_cast<std::uint32_t>(cuts.column[f]) + missing_right;
    if (is_categorical(node)) return {lane, 0};
    const std::size_t below = count_smaller(cuts.of_feature[f], threshold_of(tree, index));
    return {lane, static_cast<std::uint8_t>(below)};
  };
  const auto add_steps = [&](const auto& self, std::int32_t name) -> std::uint32_t {
    const auto mine = static_cast<std::uint32_t>(steps_.size() - scored.steps);
    steps_.push_back({0, 255, {mine, mine}});
    if (name < 0) {
      values_.push_back(tree.values[static_cast<std::size_t>(~name)]);
      return mine;
    }
    values_.push_back(0.0);
    const auto index = static_cast<std::size_t>(name);
    const auto [lane, last_left] = question_of(index);
    const std::uint32_t left = self(self, tree.nodes[index].child[0]);
    const std::uint32_t right = self(self, tree.nodes[index].child[1]);
    steps_[scored.steps + mine] = {
        lane * static_cast<std::uint32_t>(block), last_left, {left, right}};
    return mine;
  };
  const auto add_questions = [&](const auto& self, std::int32_t name, std::size_t level) -> void {
    if (name < 0 || level == n_asked) {
      ++n_exits;
      if (n_steps > 0) {
        const std::uint32_t step = add_steps(add_steps, name);
        exits_.push_back(step);
      } else {
        values_.push_back(tree.values[static_cast<std::size_t>(~name)]);
      }
      return;
    }
    const auto index = static_cast<std::size_t>(name);
    const forest::CompactNode& node = tree.nodes[index];
    const auto [lane, last_left] = question_of(index);
    Question question{lane, static_cast<std::uint8_t>(n_exits), 0, last_left, nullptr};
    if (is_categorical(node)) {
      question.categories =
          tree.category_bits.data() + std::bit_cast<std::uint32_t>(node.threshold);
    }
    const std::size_t mine = questions_.size();
    questions_.push_back(question);
    self(self, node.child[0], level + 1);
    questions_[mine].right = static_cast<std::uint8_t>(n_exits);
    self(self, node.child[1], level + 1);
  };
  // Places are numbered by the ways that lead to them; a leaf further up has several.
  const auto add_bits = [&](const auto& self, std::int32_t name, std::size_t level,
                            std::size_t path) -> void {
    if (name >= 0 && level < n_asked) {
      const auto index = static_cast<std::size_t>(name);
      const auto [lane, last_left] = question_of(index);
      std::uint32_t& number = cuts.answer[lane * (max_cuts + 1) + last_left];
      if (number == 0) {
        number = static_cast<std::uint32_t>(batch.n_answers++);
        batch.of_lane[lane].second.push_back({number, last_left});
      }
      asked_[scored.asked + (std::size_t{1} << level) - 1 + path] = number;
      self(self, tree.nodes[index].child[0], level + 1, 2 * path);
      self(self, tree.nodes[index].child[1], level + 1, 2 * path + 1);
      return;
    }
    const std::size_t n_places = std::size_t{1} << (n_asked - level);
    if (n_steps > 0) {
      exits_.insert(exits_.end(), n_places, add_steps(add_steps, name));
    } else {
      values_.insert(values_.end(), n_places, tree.values[static_cast<std::size_t>(~name)]);
    }
  };
  const std::int32_t root = tree.nodes.empty() ? ~0 : 0;
  if (by_bits) {
    asked_.resize(asked_.size() + (std::size_t{1} << n_asked) - 1);
    add_bits(add_bits, root, 0, 0);
  } else {
    add_questions(add_questions, root, 0);
  }
  scored.end = questions_.size();
  trees_.push_back(scored);
  batch.end = trees_.size();
}

bool BlockScorer::pays() const {
  double coded = 0;
  for (const Chunk& chunk : chunks_) coded += static_cast<double>(chunk.columns.size());
  return coding * coded < descending * static_cast<double>(trees_.size());
}

template <class Value>
void BlockScorer::encode(const Chunk& chunk, const Value* rows, std::size_t stride, std::size_t n,
                         std::uint8_t* codes, std::uint32_t* categories) {
  alignas(64) double values[piece_columns][piece_rows];
  const std::size_t n_columns = chunk.columns.size();
  for (std::size_t begin = 0; begin < n_columns; begin += piece_columns) {
    const std::size_t m = std::min(piece_columns, n_columns - begin);
    for (std::size_t first = 0; first < n; first += piece_rows) {
      const std::size_t count = std::min(piece_rows, n - first);
      for (std::size_t i = 0; i < count; ++i) {  // row by row: neighbours share cache lines
        const Value* const row = rows + (first + i) * stride;
        for (std::size_t c = 0; c < m; ++c) {
          values[c][i] = static_cast<double>(row[chunk.columns[begin + c].feature]);
        }
      }
      for (std::size_t c = 0; c < m; ++c) {
        const Asked& asked = chunk.columns[begin + c];
        const double* const of = values[c];
        if (asked.n_categories > 0) {
          std::uint32_t* const to = categories + (begin + c) * block + first;
          const double beyond = asked.n_categories;
          for (std::size_t i = 0; i < count; ++i) {
            const bool known = of[i] >= 0 && of[i] < beyond;  // NaN is not
            to[i] = known ? static_cast<std::uint32_t>(of[i]) : missing_category;
          }
          continue;
        }
        std::uint8_t* const to = codes + 2 * (begin + c) * block + first;
        table::count_below(of, count, chunk.searches[static_cast<std::size_t>(asked.search)], to);
        // What is missing is below every cut in one lane and above all in the other.
        raise_missing(of, count, to, to + block);
      }
    }
  }
}

void BlockScorer::find_values(const Scored& tree, const std::uint8_t* codes,
                              const std::uint32_t* categories, const std::uint64_t* answers,
                              std::size_t n, std::uint16_t* at) const {
  if (tree.n_levels > 0) {
    RowBits::choose(asked_.data() + tree.asked, tree.n_levels, answers, at);
  } else {
    alignas(64) std::uint8_t place[block];
    std::memset(place, 0, n);
    walk(questions_.data() + tree.begin, questions_.data() + tree.end, codes, categories, n, place);
    for (std::size_t i = 0; i < n; ++i) at[i] = place[i];
  }
  if (tree.n_steps == 0) return;
  const std::uint32_t* const exits = exits_.data() + tree.exits;
  const Step* const steps = steps_.data() + tree.steps;
  for (std::size_t first = 0; first < n; first += in_flight) {
    std::array<std::uint32_t, in_flight> here;
    for (std::size_t i = 0; i < in_flight; ++i) here[i] = exits[at[first + i]];
    for (std::size_t k = 0; k < tree.n_steps; ++k) {
#pragma GCC unroll 8
      for (std::size_t i = 0; i < in_flight; ++i) {
        const Step& step = steps[here[i]];
        const std::uint32_t code = codes[step.codes + first + i];
        here[i] = step.child[static_cast<std::size_t>(code > step.last_left)];
      }
    }
    for (std::size_t i = 0; i < in_flight; ++i) {
      at[first + i] = static_cast<std::uint16_t>(here[i]);
    }
  }
}

template <class Value>
void BlockScorer::add(const Value* rows, std::size_t stride, std::size_t n, std::size_t n_scores,
                      double* out) const {
  common::LargeArray<std::uint8_t> codes(2 * most_columns_ * block);
  std::fill(codes.begin(), codes.end(), std::uint8_t{0});
  std::vector<std::uint32_t> categories(any_categories_ ? most_columns_ * block : 0);
  common::LargeArray<std::uint64_t> answers(std::max<std::size_t>(most_answers_, 1) *
                                            RowBits::n_words);
  std::fill_n(answers.data(), RowBits::n_words, 0);
  // Score by score; where there is one, they are so already.
  std::vector<double> turned(n_scores > 1 ? n_scores * n : 0);
  for (std::size_t i = 0; n_scores > 1 && i < n; ++i) {
    for (std::size_t k = 0; k < n_scores; ++k) turned[k * n + i] = out[i * n_scores + k];
  }
  double* const scores = n_scores > 1 ? turned.data() : out;
  const std::size_t filled = (n + together - 1) / together * together;
  alignas(64) std::uint16_t at[side_by_side][block];
  const auto add_batch = [&](const Batch& batch) {
    for (const auto& [lane, questions] : batch.of_lane) {
      RowBits::answer(codes.data() + lane * block, questions, answers.data());
    }
    const std::size_t n_first = std::min(n_scores, batch.end - batch.begin);
    for (std::size_t first = batch.begin; first < batch.begin + n_first; ++first) {
      double* const to = scores + (first_ + first) % n_scores * n;
      for (std::size_t t = first; t < batch.end;) {
        std::array<const double*, side_by_side> values{};
        std::size_t m = 0;
        for (; m < side_by_side && t < batch.end; ++m, t += n_scores) {
          find_values(trees_[t], codes.data(), categories.data(), answers.data(), filled, at[m]);
          values[m] = values_.data() + trees_[t].values;
        }
        if (m == side_by_side) {
          for (std::size_t i = 0; i < n; ++i) {
            to[i] = (((to[i] + values[0][at[0][i]]) + values[1][at[1][i]]) + values[2][at[2][i]]) +
                    values[3][at[3][i]];
          }
          continue;
        }
        for (std::size_t j = 0; j < m; ++j) {
          for (std::size_t i = 0; i < n; ++i) to[i] += values[j][at[j][i]];
        }
      }
    }
  };
  for (const Chunk& chunk : chunks_) {
    encode(chunk, rows, stride, n, codes.data(), categories.data());
    for (const Batch& batch : chunk.batches) add_batch(batch);
  }
  for (std::size_t i = 0; n_scores > 1 && i < n; ++i) {
    for (std::size_t k = 0; k < n_scores; ++k) out[i * n_scores + k] = turned[k * n + i];
  }
}

template void BlockScorer::add(const float*, std::size_t, std::size_t, std::size_t, double*) const;
template void BlockScorer::add(const double*, std::size_t, std::size_t, std::size_t, double*) const;

}  // namespace spinney::serving
