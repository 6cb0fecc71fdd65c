#include "spinney/boosting/booster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "spinney/boosting/leaf_refit.h"
#include "spinney/boosting/mean_loss.h"
#include "spinney/boosting/round_builder.h"
#include "spinney/boosting/row_sampler.h"
#include "spinney/common/check.h"
#include "spinney/common/fixed_point.h"
#include "spinney/common/parallel.h"
#include "spinney/table/binned_matrix.h"

namespace spinney::boosting {

using common::add_up;
using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

constexpr std::size_t few_rows = 65'536;
// Memory per row that is allowed in a distributed fit, in bytes.
constexpr std::size_t bytes_per_row = 24;

// The largest weight of the given rows, of all n if null.
double largest_weight(const double* weights, const std::vector<Row>* rows, std::size_t n) {
  double largest = 0;
  if (weights == nullptr) return largest;
  if (rows == nullptr) {
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, weights[i]);
  } else {
    for (const Row row : *rows) largest = std::max(largest, weights[row]);
  }
  return largest;
}

// Over all workers, which have n_all rows with weights up to `largest`.
double sum_of_weights(const double* weights, const std::vector<Row>* rows, std::size_t n_rows,
                      double largest, std::int64_t n_all, common::Exchange* exchange) {
  if (weights == nullptr) return static_cast<double>(n_all);
  const double units = common::units_in_one(largest, static_cast<std::uint64_t>(n_all));
  std::int64_t sum = 0;
  const std::size_t n = rows == nullptr ? n_rows : rows->size();
  for (std::size_t i = 0; i < n; ++i) {
    sum += common::nearest(weights[rows == nullptr ? i : (*rows)[i]] * units);
  }
  add_up(exchange, &sum, 1);
  return static_cast<double>(sum) / units;
}

bool all_integers(const double* weights, std::size_t n) {
  return weights != nullptr && std::all_of(weights, weights + n, [](double weight) {
           return weight == std::floor(weight) && weight < 0x1p31;
         });
}

class Boosting {
 public:
  Boosting(const table::RowMatrix& matrix, const std::vector<Row>* rows,
           const loss::LossTargets& targets, const double* weights, double* scores,
           Validation& validation, const BoostOptions& options, forest::Forest& forest)
      : matrix_(matrix),
        train_{rows, rows == nullptr ? matrix.n_rows() : rows->size(), weights, matrix.n_rows(), 0},
        targets_(targets),
        scores_(scores),
        validation_(validation),
        options_(options),
        exchange_(options.exchange),
        forest_(forest),
        mean_loss_(options),
        n_rows_(matrix.n_rows()),
        n_scores_(options.loss.n_scores),
        n_outputs_(forest.shape.width()),
        n_trees_(n_outputs_ > 1 ? 1 : n_scores_) {
    check_options(options);
    check_workers();
    add_up_rows();
    sampler_.emplace(options, train_);
    make_growers();
    check_targets();
    allocate_derivatives();
    constant_hessian_ = !options.custom_derivatives && !sampler_->draws_by_gradient() &&
                        options.loss.constant_hessian() &&
                        (weights == nullptr || row_weights_.whole);
  }

  void run(BoostHistory& history, common::Watch& watch) {
    for (std::size_t i = 0; i < options_.n_rounds; ++i) {
      const std::size_t round = options_.first_round + i;
      // The loss after the previous round is computed in one pass with the derivatives.
      if (i > 0 && loss_comes_with_derivatives()) {
        history.train.push_back(
            mean_loss_.with_derivatives(training_data(), derivatives(), train_total_));
      } else {
        compute_derivatives();
      }
      sampler_->draw(round, derivatives());
      grow_round(round, watch);
      watch.advance(1);
      record(history, !loss_comes_with_derivatives() || i + 1 == options_.n_rounds);
      if (options_.after_round) options_.after_round(round);
    }
  }

  // Appends the present losses; train: also that of the training rows.
  void record(BoostHistory& history, bool train) {
    if (options_.custom_derivatives) return;  // the core cannot compute the loss
    if (train) {
      history.train.push_back(
          mean_loss_.of_rows(training_data(), train_.rows, options_.group_starts, train_total_));
    }
    if (validation_.matrix == nullptr) return;
    const ScoredRows data{validation_.targets, validation_.weights, validation_.scores,
                          validation_.matrix->n_rows()};
    history.validation.push_back(
        mean_loss_.of_rows(data, &validation_.rows, validation_.group_starts, validation_total_));
  }

 private:
  // A builder with the number of threads that it may use.
  struct Grower {
    std::unique_ptr<RoundBuilder> builder;
    std::vector<common::NodeIndex> leaf_of;
    int n_threads = 1;
  };

  loss::Derivatives derivatives() {
    return {derivatives_.data(), derivatives_.data() + n_rows_ * n_scores_, in_blocks_};
  }

  ScoredRows training_data() const { return {targets_, train_.weights, scores_, n_rows_}; }

  bool is_ranking() const { return options_.loss.kind == loss::LossKind::ranking; }

  void check_targets() const {
    const bool needs_doubles = is_ranking() || options_.loss.n_targets > 1;
    const bool validates = validation_.matrix != nullptr && validation_.matrix->n_rows() > 0;
    if (needs_doubles && ((n_rows_ > 0 && targets_.wide() == nullptr) ||
                          (validates && validation_.targets.wide() == nullptr))) {
      throw common::InputError("targets: expected float64 for this loss");
    }
  }

  void check_workers() const {
    if (exchange_ == nullptr) return;
    if (n_outputs_ > 1) {
      throw common::InputError("several workers: expected one output, got several");
    }
    if (dynamic_cast<const table::BinnedMatrix*>(&matrix_) == nullptr) {
      throw common::InputError("several workers: expected max_bins to be a number, got None");
    }
  }

  // Numbers and weights of the rows of all workers.
  void add_up_rows() {
    const bool validates = validation_.matrix != nullptr;
    const std::size_t n_validation_table = validates ? validation_.matrix->n_rows() : 0;
    double largest[2] = {largest_weight(train_.weights, train_.rows, n_rows_), 0};
    if (validates) largest[1] = largest_weight(validation_.weights, &validation_.rows, 0);
    common::find_max(exchange_, largest, 2);
    const bool whole = all_integers(train_.weights, n_rows_);
    std::int64_t n_repeated = 0;  // training rows, repeated by their weights
    for (std::size_t i = 0; whole && i < train_.n; ++i) {
      n_repeated += common::nearest(train_.weights[train_[i]]);
    }
    std::int64_t counts[4] = {static_cast<std::int64_t>(train_.n), whole ? 0 : 1,
                              static_cast<std::int64_t>(validates ? validation_.rows.size() : 0),
                              n_repeated};
    add_up(exchange_, counts, 4);
    row_weights_.values = train_.weights;
    row_weights_.whole = counts[1] == 0;
    row_weights_.repeats =
        row_weights_.whole && counts[3] <= static_cast<std::int64_t>(table::max_cut_rows);
    train_.n_all = train_total_.n_rows = static_cast<std::uint64_t>(counts[0]);
    validation_total_.n_rows = static_cast<std::uint64_t>(counts[2]);
    workers_ = {exchange_,
                row_weights_.repeats ? static_cast<std::uint64_t>(counts[3]) : train_total_.n_rows};
    largest_weight_ = largest[0];
    train_total_.weight =
        sum_of_weights(train_.weights, train_.rows, n_rows_, largest[0], counts[0], exchange_);
    if (!validates) return;
    validation_total_.weight = sum_of_weights(validation_.weights, &validation_.rows,
                                              n_validation_table, largest[1], counts[2], exchange_);
  }

  // The trees of a round are independent. If there are enough of them, each thread grows one at a
  // time; all threads share each of the remaining trees. Several workers grow one tree at a time.
  void make_growers() {
    const auto n_threads = static_cast<std::size_t>(std::max(1, options_.n_threads));
    if (n_threads > 1 && exchange_ == nullptr) n_parallel_ = n_trees_ / n_threads * n_threads;
    for (std::size_t i = 0; n_parallel_ > 0 && i < n_threads; ++i)
      growers_.push_back(make_grower(1));
    if (n_parallel_ < n_trees_) shared_grower_ = make_grower(options_.n_threads);
  }

  Grower make_grower(int n_threads) const {
    Grower grower{make_builder(matrix_, n_outputs_, options_.tree, n_threads), {}, n_threads};
    grower.builder->set_workers(workers_);
    return grower;
  }

  // Once packed, derivatives are needed again only to refine the leaves of small tables. The
  // builder may then reuse their memory.
  void allocate_derivatives() {
    RoundBuilder* const builder = shared_grower_.builder.get();
    const bool reusable =
        n_scores_ == 1 && builder != nullptr && !sampler_->draws() && workers_.n_rows > few_rows;
    const auto* const binned = dynamic_cast<const table::BinnedMatrix*>(&matrix_);
    const bool by_row = binned != nullptr && binned->only_by_row();
    in_blocks_ = reusable && by_row && !options_.custom_derivatives && !is_ranking();
    const std::size_t n_blocks = (n_rows_ + loss::row_block - 1) / loss::row_block;
    derivatives_.resize(2 * (in_blocks_ ? n_blocks * loss::row_block : n_rows_ * n_scores_));
    if (in_blocks_) {
      // Copies of columns get what scores, sums, rows and targets leave of the allowed memory.
      const std::size_t bytes = sizeof(double) + sizeof(PackedSum) + sizeof(Row) + targets_.bytes();
      builder->allow_copies(bytes < bytes_per_row ? bytes_per_row - bytes : 0);
    }
    if (reusable && !by_row) {
      builder->share_memory(reinterpret_cast<PackedSum*>(derivatives_.data()));
    }
  }

  // Whether one pass over all rows can compute the mean loss and the derivatives.
  bool loss_comes_with_derivatives() const {
    return train_.rows == nullptr && !options_.custom_derivatives && !is_ranking();
  }

  void compute_derivatives() {
    if (options_.custom_derivatives) {
      options_.custom_derivatives(scores_, derivatives());
      return;
    }
    const ScoredRows data = training_data();
    if (is_ranking()) {
      const std::vector<std::uint32_t>& starts = options_.group_starts;
      const double work = 200.0 * static_cast<double>(n_rows_);
      parallel_for(starts.size() - 1, worthwhile_threads(work, options_.n_threads, true),
                   [&](std::size_t g, int) {
                     loss::rank_derivatives(options_.ranking, data.all(), starts[g], starts[g + 1],
                                            derivatives());
                   });
      return;
    }
    for_row_blocks(n_rows_, 4.0 * static_cast<double>(n_scores_), options_.n_threads,
                   [&](std::size_t, std::size_t begin, std::size_t end) {
                     std::array<double, loss::row_block> buffer;
                     loss::differentiate(options_.loss, data.block(begin, end, buffer.data()), 0,
                                         end - begin, derivatives().from(begin));
                   });
  }

  // Appends the trees of a round, all or none.
  void grow_round(std::size_t round, common::Watch& watch) {
    const std::size_t before = forest_.trees.size();
    forest_.trees.resize(before + n_trees_);
    try {
      parallel_for(n_parallel_, options_.n_threads, [&](std::size_t k, int thread) {
        forest_.trees[before + k] =
            grow_tree(growers_[static_cast<std::size_t>(thread)], round, k, watch);
      });
      for (std::size_t k = n_parallel_; k < n_trees_; ++k) {
        forest_.trees[before + k] = grow_tree(shared_grower_, round, k, watch);
      }
    } catch (...) {
      forest_.trees.resize(before);
      throw;
    }
  }

  forest::CompactTree grow_tree(Grower& grower, std::size_t round, std::size_t k,
                                common::Watch& watch) {
    const bool draws = sampler_->draws();
    const std::vector<Row>* const rows = draws ? &sampler_->drawn() : train_.rows;
    TreeInput input;
    input.number = round * n_trees_ + k;
    input.rows = rows == nullptr ? nullptr : rows->data();
    input.n_rows = rows == nullptr ? n_rows_ : rows->size();
    input.derivatives = in_blocks_ ? derivatives() : derivatives().from(k * n_rows_);
    input.weights = row_weights_;
    if (sampler_->draws_by_gradient()) input.weights = {sampler_->weights(), false};
    input.constant_hessian = constant_hessian_;
    grower.builder->grow(input, watch);
    forest::Tree& tree = grower.builder->tree();
    double* const scores = scores_ + k * n_rows_;
    std::uint64_t n_all = workers_.n_rows;
    if (draws) {
      n_all = exchange_ == nullptr ? input.n_rows : static_cast<std::uint64_t>(tree.n_rows[0]);
    }
    // Fast for few rows. With many, the relative error of packed sums is below 1e-6.
    if (n_all <= few_rows) grower.builder->refine_leaves(input.derivatives);
    if (options_.loss.uses_line_search() && !options_.custom_derivatives) {
      search_leaf_values(grower, options_.loss.of_score(k), input.weights, scores);
    }
    for (double& value : tree.value) value *= options_.learning_rate;
    add_to_training_scores(grower, scores);
    if (draws) add_to_scores(grower, matrix_, sampler_->left_out(), scores);
    if (validation_.matrix != nullptr) {
      add_to_scores(grower, *validation_.matrix, validation_.rows,
                    validation_.scores + k * validation_.matrix->n_rows());
    }
    return forest::compact(tree, forest_.shape, forest_.n_categories);
  }

  // Sets leaf values by line search over the residuals.
  void search_leaf_values(Grower& grower, const loss::Loss& loss, const RowWeights& weights,
                          const double* scores) {
    forest::Tree& tree = grower.builder->tree();
    const std::vector<LeafRows>& leaves = grower.builder->leaves();
    const double work = 10.0 * static_cast<double>(train_.n);
    const int threads = worthwhile_threads(work, grower.n_threads, true);
    double largest = sampler_->draws_by_gradient() ? sampler_->largest_weight() : largest_weight_;
    if (weights.repeats) largest = 1;
    const double units = weights.repeats ? 1.0 : common::units_in_one(largest, workers_.n_rows);
    std::vector<LeafResiduals> residuals(leaves.size());
    parallel_for(leaves.size(), threads, [&](std::size_t i, int) {
      residuals[i] = residuals_of(leaves[i], weights, units, scores);
    });
    const double largest_units = weights.values == nullptr ? 1.0 : largest * units;
    const std::vector<double> values =
        refit_leaves(loss, residuals, largest_units, weights.repeats, workers_, threads);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      tree.value[static_cast<std::size_t>(leaves[i].node)] =
          std::clamp(values[i], leaves[i].bounds.low, leaves[i].bounds.high);
    }
  }

  LeafResiduals residuals_of(const LeafRows& leaf, const RowWeights& weights, double units,
                             const double* scores) const {
    const std::size_t n = leaf.end - leaf.begin;
    LeafResiduals out;
    out.residuals.resize(n);
    if (weights.values != nullptr) out.weights.resize(n);
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t row = leaf.rows == nullptr ? j : leaf.rows[j];
      out.residuals[j] = targets_[row] - scores[row] + 0.0;  // −0 becomes 0
      if (weights.values == nullptr) continue;
      out.weights[j] = std::max<std::int64_t>(1, common::nearest(weights.values[row] * units));
    }
    return out;
  }

  // Adds leaf values to the scores of the rows that the tree was fitted to.
  void add_to_training_scores(Grower& grower, double* scores) {
    const forest::Tree& tree = grower.builder->tree();
    struct Block {
      const LeafRows* leaf;
      std::size_t begin;
      std::size_t end;
    };
    std::vector<Block> blocks;
    for (const LeafRows& leaf : grower.builder->leaves()) {
      const std::size_t n = leaf.end - leaf.begin;
      for (std::size_t at = 0; at < n; at += loss::row_block) {
        blocks.push_back({&leaf, at, std::min(n, at + loss::row_block)});
      }
    }
    const double work = 1.5 * static_cast<double>(train_.n);
    parallel_for(blocks.size(), worthwhile_threads(work, grower.n_threads, true),
                 [&](std::size_t i, int) {
                   const Block& block = blocks[i];
                   const auto leaf = static_cast<std::size_t>(block.leaf->node);
                   const Row* const rows = block.leaf->rows;
                   for (std::size_t k = 0; k < n_outputs_; ++k) {
                     const double value = tree.value[leaf * n_outputs_ + k];
                     double* const of_output = scores + k * n_rows_;
                     for (std::size_t j = block.begin; j < block.end; ++j) {
                       of_output[rows == nullptr ? j : rows[j]] += value;
                     }
                   }
                 });
  }

  // Adds leaf values to the scores of other rows.
  void add_to_scores(Grower& grower, const table::RowMatrix& matrix, const std::vector<Row>& rows,
                     double* scores) {
    const forest::Tree& tree = grower.builder->tree();
    grower.leaf_of.resize(rows.size());
    grower.builder->find_leaves(matrix, rows.data(), rows.size(), grower.leaf_of.data());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto leaf = static_cast<std::size_t>(grower.leaf_of[i]);
      for (std::size_t k = 0; k < n_outputs_; ++k) {
        scores[k * matrix.n_rows() + rows[i]] += tree.value[leaf * n_outputs_ + k];
      }
    }
  }

  const table::RowMatrix& matrix_;
  TrainingRows train_;
  loss::LossTargets targets_;
  double* scores_;
  Validation& validation_;
  const BoostOptions& options_;
  common::Exchange* exchange_;
  forest::Forest& forest_;
  MeanLoss mean_loss_;
  std::optional<RowSampler> sampler_;
  std::size_t n_rows_;
  std::size_t n_scores_;
  std::size_t n_outputs_;        // weights of a leaf
  std::size_t n_trees_;          // per round
  std::size_t n_parallel_ = 0;   // trees per round that are grown by one thread each
  std::vector<Grower> growers_;  // one per thread
  Grower shared_grower_;         // for the other trees, with all threads
  Workers workers_;
  LossTotal train_total_;
  LossTotal validation_total_;
  RowWeights row_weights_;
  double largest_weight_ = 0;  // of a row, over all workers
  bool constant_hessian_ = false;
  bool in_blocks_ = false;                 // layout of the derivatives
  common::LargeArray<float> derivatives_;  // gradients, then Hessians
};

}  // namespace

void boost(const table::RowMatrix& matrix, const std::vector<Row>* rows,
           const loss::LossTargets& targets, const double* weights, double* scores,
           Validation& validation, const BoostOptions& options, forest::Forest& forest,
           BoostHistory& history, common::Watch& watch) {
  Boosting boosting(matrix, rows, targets, weights, scores, validation, options, forest);
  if (options.n_rounds == 0) boosting.record(history, true);
  boosting.run(history, watch);
}

void append_mean(const std::vector<const forest::Forest*>& forests, std::size_t n_rounds,
                 std::size_t n_scores, forest::Forest& out) {
  const auto share = 1.0 / static_cast<double>(forests.size());
  for (std::size_t round = 0; round < n_rounds; ++round) {
    for (const forest::Forest* const forest : forests) {
      for (std::size_t k = 0; k < n_scores; ++k) {
        forest::CompactTree tree = forest->trees[round * n_scores + k];
        for (double& value : tree.values.edit()) value *= share;
        for (double& value : tree.inner_value.edit()) value *= share;
        out.trees.push_back(std::move(tree));
      }
    }
  }
}

}  // namespace spinney::boosting
