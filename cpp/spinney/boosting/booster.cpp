#include "spinney/boosting/booster.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "spinney/boosting/block_scorer.h"
#include "spinney/common/exp.h"
#include "spinney/common/parallel.h"
#include "spinney/ensemble/forest_reader.h"
#include "spinney/table/row_block.h"

namespace spinney {
namespace {

constexpr std::size_t row_block = 16'384;
constexpr std::size_t few_rows = 65'536;

template <class Body>
void by_blocks(std::size_t n, double nanoseconds, int n_threads, const Body& body) {
  const int threads = worthwhile_threads(nanoseconds * static_cast<double>(n), n_threads, true);
  parallel_for((n + row_block - 1) / row_block, threads, [&](std::size_t block, int) {
    body(block, block * row_block, std::min(n, (block + 1) * row_block));
  });
}

class Boosting {
 public:
  Boosting(const RowMatrix& matrix, const std::vector<Row>& rows, const double* targets,
           const double* weights, double* scores, Validation& validation,
           const BoostOptions& options, Forest& forest)
      : matrix_(matrix),
        rows_(rows),
        targets_(targets),
        weights_(weights),
        scores_(scores),
        validation_(validation),
        options_(options),
        forest_(forest),
        n_rows_(matrix.n_rows()),
        n_scores_(options.loss.n_scores),
        width_(forest.shape.width()),
        n_trees_(width_ > 1 ? 1 : n_scores_) {
    // The trees of a round do not depend on each other: where there are enough of them, each thread
    // grows its own, and they share what is left over.
    const auto n_threads = static_cast<std::size_t>(std::max(1, options.n_threads));
    if (n_threads > 1) n_side_by_side_ = n_trees_ / n_threads * n_threads;
    for (std::size_t i = 0; n_side_by_side_ > 0 && i < n_threads; ++i) {
      workers_.push_back({make_builder(matrix, width_, options.tree, 1), {}, 1});
    }
    if (n_side_by_side_ < n_trees_) {
      together_ = {
          make_builder(matrix, width_, options.tree, options.n_threads), {}, options.n_threads};
    }
    first_.resize(n_rows_ * n_scores_);
    second_.resize(n_rows_ * n_scores_);
    n_learned_ = rows.empty() ? n_rows_ : rows.size();
    // Where every second derivative is 1 their sums are numbers of rows, if weights are.
    row_weights_.values = weights;
    if (weights != nullptr) {
      row_weights_.whole = std::all_of(weights, weights + n_rows_, [](double weight) {
        return weight == std::floor(weight) && weight < 0x1p31;
      });
    }
    constant_hessian_ = !options.own_gradients && !samples_by_gradient() &&
                        options.loss.constant_hessian() &&
                        (weights == nullptr || row_weights_.whole);
  }

  void run(BoostHistory& history, Watch& watch) {
    for (std::size_t i = 0; i < options_.n_rounds; ++i) {
      const std::size_t round = options_.first_round + i;
      // What the round before came to is found with the derivatives of this one.
      const double so_far = find_gradients(i > 0 && sums_on_the_way());
      if (i > 0 && sums_on_the_way()) history.train.push_back(so_far);
      draw_rows(round);
      const std::size_t before = forest_.trees.size();
      forest_.trees.resize(before + n_trees_);
      parallel_for(n_side_by_side_, options_.n_threads, [&](std::size_t k, int worker) {
        forest_.trees[before + k] =
            grow_tree(workers_[static_cast<std::size_t>(worker)], round, k, watch);
      });
      for (std::size_t k = n_side_by_side_; k < n_trees_; ++k) {
        forest_.trees[before + k] = grow_tree(together_, round, k, watch);
      }
      watch.advance(1);
      if (options_.own_gradients) continue;  // nobody told what the loss is
      if (!sums_on_the_way() || i + 1 == options_.n_rounds) {
        history.train.push_back(
            mean_loss({targets_, weights_, scores_, n_rows_}, rows_, options_.groups));
      }
      if (validation_.matrix == nullptr) continue;
      history.validation.push_back(mean_loss({validation_.targets, validation_.weights,
                                              validation_.scores, validation_.matrix->n_rows()},
                                             validation_.rows, validation_.groups));
    }
  }

 private:
  Derivatives derivatives() { return {first_.data(), second_.data()}; }

  // Whether the mean loss can be found along with the derivatives: both are about all rows.
  bool sums_on_the_way() const {
    return rows_.empty() && !options_.own_gradients && options_.loss.kind != LossKind::ranking;
  }

  // Returns the mean loss, if it is wanted.
  double find_gradients(bool with_loss) {
    if (options_.own_gradients) {
      options_.own_gradients(scores_, derivatives());
      return 0;
    }
    const LossData data{targets_, weights_, scores_, n_rows_};
    if (options_.loss.kind == LossKind::ranking) {
      const std::size_t n_groups = options_.groups.size() - 1;
      const double work = 200.0 * static_cast<double>(n_rows_);
      parallel_for(n_groups, worthwhile_threads(work, options_.n_threads, true),
                   [&](std::size_t g, int) {
                     rank_derivatives(options_.ranking, data, options_.groups[g],
                                      options_.groups[g + 1], derivatives());
                   });
      return 0;
    }
    std::vector<double> sums((n_rows_ + row_block - 1) / row_block);
    by_blocks(n_rows_, 4.0 * static_cast<double>(n_scores_), options_.n_threads,
              [&](std::size_t block, std::size_t begin, std::size_t end) {
                if (with_loss) {
                  sums[block] =
                      differentiate_and_sum(options_.loss, data, begin, end, derivatives());
                } else {
                  differentiate(options_.loss, data, begin, end, derivatives());
                }
              });
    return std::accumulate(sums.begin(), sums.end(), 0.0) / total_weight(weights_, n_rows_);
  }

  bool samples_by_gradient() const { return options_.by_gradient && options_.subsample < 1; }

  void draw_rows(std::size_t round) {
    if (options_.subsample >= 1) return;
    if (options_.by_gradient) {
      draw_by_gradient(round);
    } else {
      draw_evenly(round);
    }
  }

  void draw_by_gradient(std::size_t round) {
    const double curvature = options_.tree.split.l2;
    std::vector<double> sizes(n_learned_);
    for (std::size_t i = 0; i < n_learned_; ++i) {
      const std::size_t row = rows_.empty() ? i : rows_[i];
      double sum = 0;
      for (std::size_t k = 0; k < n_scores_; ++k) {
        const auto g = static_cast<double>(first_[k * n_rows_ + row]);
        const auto h = static_cast<double>(second_[k * n_rows_ + row]);
        sum += g * g + curvature * h * h;
      }
      sizes[i] = std::sqrt(sum) * (weights_ == nullptr ? 1.0 : weights_[row]);
    }
    const double wanted = options_.subsample * static_cast<double>(n_learned_);
    const double certain = certain_size(sizes, wanted);
    drawn_.clear();
    left_out_.clear();
    drawn_weights_.resize(n_rows_);
    Stream stream(options_.tree.seed, Purpose::rows, round);
    for (std::size_t i = 0; i < n_learned_; ++i) {
      const Row row = rows_.empty() ? static_cast<Row>(i) : rows_[i];
      const double chance = certain > 0 ? std::min(1.0, sizes[i] / certain) : 1.0;
      if (stream.uniform() < chance) {
        drawn_.push_back(row);
        drawn_weights_[row] = (weights_ == nullptr ? 1.0 : weights_[row]) / chance;
      } else {
        left_out_.push_back(row);
      }
    }
    if (drawn_.empty()) {  // gradients of nothing: any row will do
      drawn_.push_back(left_out_.front());
      drawn_weights_[left_out_.front()] = weights_ == nullptr ? 1.0 : weights_[left_out_.front()];
      left_out_.erase(left_out_.begin());
    }
  }

  // The size from which rows are drawn for certain, so that `wanted` are drawn in all: the chance
  // of a row is its size over this one. Found like a quantile, by parting and looking at one side.
  static double certain_size(std::vector<double> sizes, double wanted) {
    double small = 0;       // sum of sizes that are known to be below it
    std::size_t large = 0;  // sizes that are known to be above it
    std::size_t begin = 0;
    std::size_t end = sizes.size();
    while (begin < end) {
      const double pivot = sizes[begin + (end - begin) / 2];
      const auto first = sizes.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = sizes.begin() + static_cast<std::ptrdiff_t>(end);
      const auto middle = std::partition(first, last, [&](double s) { return s < pivot; });
      const auto after = std::partition(middle, last, [&](double s) { return s == pivot; });
      const double below = std::accumulate(first, middle, 0.0);
      const auto equal = static_cast<double>(after - middle);
      const auto above = static_cast<double>(last - after) + static_cast<double>(large);
      if (pivot > 0 && (small + below) / pivot + equal + above > wanted) {
        small += below + equal * pivot;  // the pivot is below it, too
        begin = static_cast<std::size_t>(after - sizes.begin());
      } else {
        large += static_cast<std::size_t>(last - middle);
        end = static_cast<std::size_t>(middle - sizes.begin());
      }
    }
    const double rest = wanted - static_cast<double>(large);
    return rest > 0 ? small / rest : 0.0;
  }

  // Each remaining row is taken with the probability that makes the number right.
  void draw_evenly(std::size_t round) {
    const auto wanted = static_cast<std::size_t>(
        std::max(1.0, std::round(options_.subsample * static_cast<double>(n_learned_))));
    drawn_.clear();
    left_out_.clear();
    Stream stream(options_.tree.seed, Purpose::rows, round);
    for (std::size_t i = 0; i < n_learned_; ++i) {
      const Row row = rows_.empty() ? static_cast<Row>(i) : rows_[i];
      const double chance =
          static_cast<double>(wanted - drawn_.size()) / static_cast<double>(n_learned_ - i);
      (stream.uniform() < chance ? drawn_ : left_out_).push_back(row);
    }
  }

  struct Worker {
    std::unique_ptr<RoundBuilder> builder;
    std::vector<NodeIndex> leaf_of;
    int n_threads = 1;
  };

  CompactTree grow_tree(Worker& worker, std::size_t round, std::size_t k, Watch& watch) {
    const bool draws = options_.subsample < 1;
    const std::vector<Row>& learned = draws ? drawn_ : rows_;
    RowWeights row_weights = row_weights_;
    if (samples_by_gradient()) row_weights = {drawn_weights_.data(), false};
    const Row* const rows = learned.empty() ? nullptr : learned.data();
    const std::size_t n = learned.empty() ? n_rows_ : learned.size();
    worker.builder->grow(round * n_trees_ + k, rows, n, derivatives().from(k * n_rows_),
                         row_weights, constant_hessian_, watch);
    Tree& tree = worker.builder->tree();
    double* const scores = scores_ + k * n_rows_;
    // With few rows it costs nothing; with many the packed sums err by less than a millionth.
    if (n <= few_rows) worker.builder->refine_leaves(derivatives().from(k * n_rows_));
    if (options_.loss.refits_leaves() && !options_.own_gradients)
      refit_leaves(worker, options_.loss.of_score(k), row_weights.values, scores);
    for (double& value : tree.value) value *= options_.learning_rate;
    update(worker, scores);
    if (draws) follow(worker, matrix_, left_out_, scores);
    if (validation_.matrix != nullptr) {
      follow(worker, *validation_.matrix, validation_.rows,
             validation_.scores + k * validation_.matrix->n_rows());
    }
    return compact(tree, forest_.shape, forest_.n_categories);
  }

  void refit_leaves(Worker& worker, const Loss& loss, const double* row_weights,
                    const double* scores) {
    Tree& tree = worker.builder->tree();
    const std::vector<LeafRows>& leaves = worker.builder->leaves();
    const double work = 10.0 * static_cast<double>(n_learned_);
    parallel_for(
        leaves.size(), worthwhile_threads(work, worker.n_threads, true), [&](std::size_t i, int) {
          const LeafRows& leaf = leaves[i];
          const std::size_t n = leaf.end - leaf.begin;
          std::vector<double> residuals(n);
          std::vector<double> weights(row_weights == nullptr ? 0 : n);
          for (std::size_t j = 0; j < n; ++j) {
            const std::size_t row = leaf.rows == nullptr ? j : leaf.rows[j];
            residuals[j] = targets_[row] - scores[row];
            if (row_weights != nullptr) weights[j] = row_weights[row];
          }
          tree.value[static_cast<std::size_t>(leaf.node)] =
              std::clamp(refit(loss, residuals, weights), leaf.bounds.low, leaf.bounds.high);
        });
  }

  void update(Worker& worker, double* scores) {
    const Tree& tree = worker.builder->tree();
    struct Piece {
      const LeafRows* leaf;
      std::size_t begin;
      std::size_t end;
    };
    std::vector<Piece> pieces;
    for (const LeafRows& leaf : worker.builder->leaves()) {
      const std::size_t n = leaf.end - leaf.begin;
      for (std::size_t at = 0; at < n; at += row_block) {
        pieces.push_back({&leaf, at, std::min(n, at + row_block)});
      }
    }
    const double work = 1.5 * static_cast<double>(n_learned_);
    parallel_for(pieces.size(), worthwhile_threads(work, worker.n_threads, true),
                 [&](std::size_t i, int) {
                   const Piece& piece = pieces[i];
                   const auto leaf = static_cast<std::size_t>(piece.leaf->node);
                   const Row* const rows = piece.leaf->rows;
                   for (std::size_t k = 0; k < width_; ++k) {
                     const double value = tree.value[leaf * width_ + k];
                     double* const of = scores + k * n_rows_;
                     for (std::size_t j = piece.begin; j < piece.end; ++j) {
                       of[rows == nullptr ? j : rows[j]] += value;
                     }
                   }
                 });
  }

  // Adds the tree's values to the scores of rows that it did not learn from.
  void follow(Worker& worker, const RowMatrix& matrix, const std::vector<Row>& rows,
              double* scores) {
    const Tree& tree = worker.builder->tree();
    worker.leaf_of.resize(rows.size());
    worker.builder->find_leaves(matrix, rows.data(), rows.size(), worker.leaf_of.data());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto leaf = static_cast<std::size_t>(worker.leaf_of[i]);
      for (std::size_t k = 0; k < width_; ++k) {
        scores[k * matrix.n_rows() + rows[i]] += tree.value[leaf * width_ + k];
      }
    }
  }

  // Over the given rows, all if there are none.
  double mean_loss(const LossData& data, const std::vector<Row>& rows,
                   const std::vector<std::uint32_t>& groups) {
    if (options_.loss.kind == LossKind::ranking) return mean_rank_loss(data, rows, groups);
    if (!rows.empty() && rows.size() < data.n_rows) return mean_loss_of(data, rows);
    std::vector<double> sums((data.n_rows + row_block - 1) / row_block);
    by_blocks(data.n_rows, 4.0 * static_cast<double>(n_scores_), options_.n_threads,
              [&](std::size_t block, std::size_t begin, std::size_t end) {
                sums[block] = loss_sum(options_.loss, data, begin, end);
              });
    return std::accumulate(sums.begin(), sums.end(), 0.0) / total_weight(data.weights, data.n_rows);
  }

  // Mean over groups whose rows are among the given ones.
  double mean_rank_loss(const LossData& data, const std::vector<Row>& rows,
                        const std::vector<std::uint32_t>& groups) {
    std::vector<double> losses(groups.size() - 1);
    parallel_for(
        losses.size(),
        worthwhile_threads(50.0 * static_cast<double>(data.n_rows), options_.n_threads, true),
        [&](std::size_t g, int) {
          losses[g] = rank_loss(options_.ranking, data, groups[g], groups[g + 1]);
        });
    double sum = 0;
    double n = 0;
    for (std::size_t g = 0; g < losses.size(); ++g) {
      if (std::isnan(losses[g])) continue;
      if (!rows.empty() && !std::binary_search(rows.begin(), rows.end(), groups[g])) continue;
      sum += losses[g];
      n += 1;
    }
    return n > 0 ? sum / n : 0.0;
  }

  // Rows here and there: copied side by side first.
  double mean_loss_of(const LossData& data, const std::vector<Row>& rows) {
    const std::size_t n = rows.size();
    const std::size_t n_targets = options_.loss.many_targets ? n_scores_ : 1;
    std::vector<double> targets(n * n_targets);
    std::vector<double> weights(data.weights == nullptr ? 0 : n);
    std::vector<double> scores(n * n_scores_);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < n_targets; ++k) {
        targets[k * n + i] = data.targets[k * data.n_rows + rows[i]];
      }
      if (data.weights != nullptr) weights[i] = data.weights[rows[i]];
      for (std::size_t k = 0; k < n_scores_; ++k) {
        scores[k * n + i] = data.scores[k * data.n_rows + rows[i]];
      }
    }
    const double* const given = data.weights == nullptr ? nullptr : weights.data();
    return mean_loss({targets.data(), given, scores.data(), n}, {}, {});
  }

  static double total_weight(const double* weights, std::size_t n) {
    if (weights == nullptr) return static_cast<double>(n);
    return std::accumulate(weights, weights + n, 0.0);
  }

  const RowMatrix& matrix_;
  const std::vector<Row>& rows_;
  const double* targets_;
  const double* weights_;
  double* scores_;
  Validation& validation_;
  const BoostOptions& options_;
  Forest& forest_;
  std::size_t n_side_by_side_ = 0;  // trees of a round that threads grow one each
  std::vector<Worker> workers_;     // for these
  Worker together_;                 // for the others, with all threads
  std::size_t n_rows_;
  std::size_t n_scores_;
  std::size_t width_;    // weights of a leaf
  std::size_t n_trees_;  // of a round
  std::size_t n_learned_ = 0;
  RowWeights row_weights_;
  bool constant_hessian_ = false;
  LargeArray<float> first_;
  LargeArray<float> second_;
  std::vector<Row> drawn_;
  std::vector<Row> left_out_;
  std::vector<double> drawn_weights_;  // of rows drawn by their gradients
};

}  // namespace

void boost(const RowMatrix& matrix, const std::vector<Row>& rows, const double* targets,
           const double* weights, double* scores, Validation& validation,
           const BoostOptions& options, Forest& forest, BoostHistory& history, Watch& watch) {
  Boosting(matrix, rows, targets, weights, scores, validation, options, forest).run(history, watch);
}

void append_mean(const std::vector<const Forest*>& forests, std::size_t n_rounds,
                 std::size_t n_scores, Forest& out) {
  const auto share = 1.0 / static_cast<double>(forests.size());
  for (std::size_t round = 0; round < n_rounds; ++round) {
    for (const Forest* const forest : forests) {
      for (std::size_t k = 0; k < n_scores; ++k) {
        CompactTree tree = forest->trees[round * n_scores + k];
        for (double& value : tree.values.edit()) value *= share;
        for (double& value : tree.inner_value.edit()) value *= share;
        out.trees.push_back(std::move(tree));
      }
    }
  }
}

RowScorer::RowScorer(const Forest& forest, std::vector<double> baseline, std::size_t n_rounds,
                     Link link)
    : forest_(forest), baseline_(std::move(baseline)), n_rounds_(n_rounds), link_(link) {
  for (std::size_t f = 0; f < forest.n_features(); ++f) {
    if (forest.n_categories[f] > 0) categorical_.push_back(f);
  }
}

std::size_t RowScorer::n_out() const {
  return link_ == Link::logistic || link_ == Link::twice_logistic ? 2 : baseline_.size();
}

void RowScorer::score(const double* row, double* out) const {
  if (categorical_.empty()) return score_known(row, out);
  // A code that no category has would be looked up beyond the sets: it counts as missing.
  std::vector<double> known(row, row + n_features());
  for (const std::size_t f : categorical_) {
    const auto beyond = static_cast<double>(forest_.n_categories[f]);
    if (!(known[f] >= 0 && known[f] < beyond)) known[f] = std::numeric_limits<double>::quiet_NaN();
  }
  score_known(known.data(), out);
}

void RowScorer::score_known(const double* row, double* out) const {
  const std::size_t n_scores = baseline_.size();
  std::copy(baseline_.begin(), baseline_.end(), out);
  const std::size_t width = forest_.shape.width();
  const std::size_t n_trees = n_rounds_ * (width > 1 ? 1 : n_scores);
  for (std::size_t t = 0, k = 0; t < n_trees; ++t) {
    const CompactTree& tree = forest_.trees[t];
    std::int32_t at = tree.nodes.empty() ? ~0 : 0;
    while (at >= 0) {
      const auto index = static_cast<std::size_t>(at);
      at = tree.nodes[index].child[goes_left(tree, index, row) ? 0 : 1];
    }
    if (width > 1) {
      for (std::size_t j = 0; j < width; ++j) {
        out[j] += tree.values[static_cast<std::size_t>(~at) * width + j];
      }
      continue;
    }
    out[k] += tree.values[static_cast<std::size_t>(~at)];
    if (++k == n_scores) k = 0;
  }
  switch (link_) {
    case Link::exponential:
      out[0] = exp(out[0]);
      break;
    case Link::probability:
      out[0] = 1.0 / (1.0 + exp(-out[0]));
      break;
    case Link::twice_logistic:
    case Link::logistic: {
      const double odds = link_ == Link::logistic ? out[0] : 2 * out[0];
      out[0] = 1.0 / (1.0 + exp(odds));
      out[1] = 1.0 / (1.0 + exp(-odds));
      break;
    }
    case Link::softmax: {
      const double top = *std::max_element(out, out + n_scores);
      double total = 0;
      for (std::size_t k = 0; k < n_scores; ++k) total += out[k] = exp(out[k] - top);
      for (std::size_t k = 0; k < n_scores; ++k) out[k] /= total;
      break;
    }
    default:
      break;
  }
}

void add_rounds(const Forest& forest, const Table& table, std::size_t n_scores, std::size_t first,
                std::size_t last, int n_threads, double* out) {
  const RowReader reader(table, forest.n_categories);
  const std::size_t n_rows = table.n_rows;
  const std::size_t width = forest.shape.width();
  const std::size_t n_trees = (last - first) * n_scores;
  const std::size_t first_tree = first * n_scores;
  const std::size_t last_tree = last * n_scores;
  std::optional<BlockScorer> scorer;
  if (BlockScorer::serves(forest, first_tree, last_tree, n_rows)) {
    scorer.emplace(forest, first_tree, last_tree);
    if (!scorer->pays()) scorer.reset();
  }
  const bool together = scorer.has_value();
  const double work = (together ? 2.0 : 15.0) * static_cast<double>(n_rows * n_trees);
  const int threads = worthwhile_threads(work, n_threads);
  const std::size_t share = n_rows / (4 * static_cast<std::size_t>(threads)) + 1;
  const std::size_t most = together ? BlockScorer::block_rows : std::size_t{2048};
  const std::size_t block =
      std::clamp<std::size_t>(share, 8, std::min<std::size_t>(most, reader.max_rows()));
  const auto by_blocks_of_rows = [&](const auto& body) {
    parallel_for((n_rows + block - 1) / block, threads, [&](std::size_t piece, int) {
      const std::size_t begin = piece * block;
      const std::size_t n = std::min(block, n_rows - begin);
      reader.read(begin, n, [&](const auto* values, std::size_t stride, bool may_miss) {
        body(values, stride, n, may_miss, out + begin * n_scores * width);
      });
    });
  };
  if (together) {
    by_blocks_of_rows([&](const auto* values, std::size_t stride, std::size_t n, bool, double* to) {
      scorer->add(values, stride, n, n_scores, to);
    });
    return;
  }
  by_blocks_of_rows(
      [&](const auto* values, std::size_t stride, std::size_t n, bool may_miss, double* to) {
        std::vector<std::uint32_t> leaves(n);
        for (std::size_t t = first_tree; t < last_tree; ++t) {
          const CompactTree& tree = forest.trees[t];
          descend(tree, values, stride, n, may_miss, leaves.data());
          if (width > 1) {
            for (std::size_t i = 0; i < n; ++i) {
              for (std::size_t k = 0; k < width; ++k) {
                to[i * width + k] += tree.values[leaves[i] * width + k];
              }
            }
            continue;
          }
          double* const score = to + t % n_scores;
          for (std::size_t i = 0; i < n; ++i) score[i * n_scores] += tree.values[leaves[i]];
        }
      });
}

}  // namespace spinney
