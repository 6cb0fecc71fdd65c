#include "spinney/boosting/booster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "spinney/boosting/leaf_refit.h"
#include "spinney/boosting/round_builder.h"
#include "spinney/common/check.h"
#include "spinney/common/fixed_point.h"
#include "spinney/common/parallel.h"
#include "spinney/common/random.h"
#include "spinney/table/binned_matrix.h"

namespace spinney::boosting {

using common::add_up;
using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

constexpr std::size_t few_rows = 65'536;

template <class Body>
void by_blocks(std::size_t n, double nanoseconds, int n_threads, const Body& body) {
  const int threads = worthwhile_threads(nanoseconds * static_cast<double>(n), n_threads, true);
  parallel_for((n + loss::row_block - 1) / loss::row_block, threads, [&](std::size_t block, int) {
    body(block, block * loss::row_block, std::min(n, (block + 1) * loss::row_block));
  });
}

// The size from which rows are drawn for certain, so that `wanted` are drawn in all: the chance of
// a row is its size over this one. With S(v) the sum of the sizes below v and N(v) the number of
// the others, S(v)/v + N(v) falls with v; the bits of the largest v at which it is above `wanted`
// are found ten at a time, from sums over all workers.
double certain_size(const std::vector<std::int64_t>& sizes, double wanted,
                    common::Exchange* exchange) {
  constexpr int digit_bits = 10;
  constexpr std::size_t n_digits = std::size_t{1} << digit_bits;
  std::vector<std::int64_t> found(2 * n_digits);  // sums, numbers
  std::int64_t low = 0;
  std::int64_t small = 0;  // sum of sizes that are known to be below
  std::int64_t large = 0;  // sizes that are known to be above
  for (int shift = 4 * digit_bits; shift >= 0; shift -= digit_bits) {
    std::fill(found.begin(), found.end(), 0);
    for (const std::int64_t size : sizes) {
      const std::int64_t from = size - low;
      if (from < 0 || from >> shift >= static_cast<std::int64_t>(n_digits)) continue;
      const auto digit = static_cast<std::size_t>(from >> shift);
      found[digit] += size;
      ++found[n_digits + digit];
    }
    add_up(exchange, found.data(), found.size());
    std::int64_t below = small;
    std::int64_t above = large;
    for (std::size_t digit = 0; digit < n_digits; ++digit) above += found[n_digits + digit];
    std::size_t last = 0;
    for (std::size_t digit = 0; digit < n_digits; ++digit) {
      if (digit > 0) {
        const std::int64_t value = low + (static_cast<std::int64_t>(digit) << shift);
        const double drawn =
            static_cast<double>(below) / static_cast<double>(value) + static_cast<double>(above);
        if (!(drawn > wanted)) break;
        last = digit;
        small = below;
      }
      below += found[digit];
      above -= found[n_digits + digit];
    }
    for (std::size_t digit = last + 1; digit < n_digits; ++digit) large += found[n_digits + digit];
    low += static_cast<std::int64_t>(last) << shift;
    if (shift == 0) small += found[last];
  }
  const double rest = wanted - static_cast<double>(large);
  return rest > 0 ? static_cast<double>(small) / rest : 0.0;
}

// Numbers of rows in the whole table, of which this worker may have a part.
class RowNumbers {
 public:
  explicit RowNumbers(const std::vector<RowRange>& ranges) : ranges_(ranges) {}

  // Of rows that ascend from call to call.
  std::uint64_t operator()(std::size_t row) {
    if (ranges_.empty()) return row;
    while (at_ + 1 < ranges_.size() && ranges_[at_ + 1].begin <= row) ++at_;
    return ranges_[at_].number + (row - ranges_[at_].begin);
  }

 private:
  const std::vector<RowRange>& ranges_;
  std::size_t at_ = 0;
};

// Rows and what is known of them: targets and weights by row, scores [score][row].
struct ScoredRows {
  loss::LossTargets targets;
  const double* weights = nullptr;
  const double* scores = nullptr;
  std::size_t n_rows = 0;

  // The rows [begin, end), at most row_block, as 0 … end - begin.
  loss::LossData piece(std::size_t begin, std::size_t end, double* room) const {
    return {targets.as_doubles(begin, end, room), weights == nullptr ? nullptr : weights + begin,
            scores + begin, n_rows};
  }
  // All of them, where targets are doubles.
  loss::LossData whole() const { return {targets.wide(), weights, scores, n_rows}; }
};

class Boosting {
 public:
  Boosting(const table::RowMatrix& matrix, const std::vector<Row>* rows,
           const loss::LossTargets& targets, const double* weights, double* scores,
           Validation& validation, const BoostOptions& options, forest::Forest& forest)
      : matrix_(matrix),
        rows_(rows),
        targets_(targets),
        weights_(weights),
        scores_(scores),
        validation_(validation),
        options_(options),
        exchange_(options.exchange),
        forest_(forest),
        n_rows_(matrix.n_rows()),
        n_scores_(options.loss.n_scores),
        width_(forest.shape.width()),
        n_trees_(width_ > 1 ? 1 : n_scores_) {
    check_options(options);
    n_learned_ = rows == nullptr ? n_rows_ : rows->size();
    meet();
    // The trees of a round do not depend on each other: where there are enough of them, each thread
    // grows its own, and they share what is left over. With other workers one after the other.
    const auto n_threads = static_cast<std::size_t>(std::max(1, options.n_threads));
    if (n_threads > 1 && exchange_ == nullptr) n_side_by_side_ = n_trees_ / n_threads * n_threads;
    for (std::size_t i = 0; n_side_by_side_ > 0 && i < n_threads; ++i) {
      growers_.push_back({make_builder(matrix, width_, options.tree, 1), {}, 1});
    }
    if (n_side_by_side_ < n_trees_) {
      together_ = {
          make_builder(matrix, width_, options.tree, options.n_threads), {}, options.n_threads};
      together_.builder->set_workers(workers_);
    }
    for (Grower& grower : growers_) grower.builder->set_workers(workers_);
    check_targets();
    // Nobody needs the derivatives again once they are packed, but to refine the leaves of few.
    const bool spent =
        n_scores_ == 1 && together_.builder != nullptr && !draws() && workers_.n_rows > few_rows;
    const auto* const binned = dynamic_cast<const table::BinnedMatrix*>(&matrix);
    const bool by_row = binned != nullptr && binned->only_by_row();
    in_blocks_ = spent && by_row && !options.custom_derivatives &&
                 options.loss.kind != loss::LossKind::ranking;
    const std::size_t n_blocks = (n_rows_ + loss::row_block - 1) / loss::row_block;
    derivatives_.resize(2 * (in_blocks_ ? n_blocks * loss::row_block : n_rows_ * n_scores_));
    if (in_blocks_) {
      // What is left of 24 bytes a row: the others are scores, sums, rows and targets.
      const std::size_t bytes = sizeof(double) + sizeof(PackedSum) + sizeof(Row) + targets.bytes();
      together_.builder->allow_copies(bytes < 24 ? 24 - bytes : 0);
    }
    if (spent && !by_row) {
      together_.builder->lend(reinterpret_cast<PackedSum*>(derivatives_.data()));
    }
    constant_hessian_ = !options.custom_derivatives && !samples_by_gradient() &&
                        options.loss.constant_hessian() &&
                        (weights == nullptr || row_weights_.whole);
  }

  void run(BoostHistory& history, common::Watch& watch) {
    for (std::size_t i = 0; i < options_.n_rounds; ++i) {
      const std::size_t round = options_.first_round + i;
      // What the round before came to is found with the derivatives of this one.
      const bool with_loss = i > 0 && sums_on_the_way();
      const double so_far = find_gradients(with_loss);
      if (with_loss) history.train.push_back(so_far);
      draw_rows(round);
      const std::size_t before = forest_.trees.size();
      forest_.trees.resize(before + n_trees_);
      try {
        parallel_for(n_side_by_side_, options_.n_threads, [&](std::size_t k, int thread) {
          forest_.trees[before + k] =
              grow_tree(growers_[static_cast<std::size_t>(thread)], round, k, watch);
        });
        for (std::size_t k = n_side_by_side_; k < n_trees_; ++k) {
          forest_.trees[before + k] = grow_tree(together_, round, k, watch);
        }
      } catch (...) {
        forest_.trees.resize(before);  // no half rounds
        throw;
      }
      watch.advance(1);
      note(history, !sums_on_the_way() || i + 1 == options_.n_rounds);
      if (options_.after_round) options_.after_round(round);
    }
  }

  // Adds what the scores are worth now.
  void note(BoostHistory& history, bool of_train) {
    if (options_.custom_derivatives) return;  // nobody told what the loss is
    if (of_train) {
      history.train.push_back(mean_loss(learned(), rows_, options_.group_starts, learned_total_));
    }
    if (validation_.matrix == nullptr) return;
    const ScoredRows watched{validation_.targets, validation_.weights, validation_.scores,
                             validation_.matrix->n_rows()};
    history.validation.push_back(
        mean_loss(watched, &validation_.rows, validation_.group_starts, watched_total_));
  }

 private:
  loss::Derivatives derivatives() {
    return {derivatives_.data(), derivatives_.data() + n_rows_ * n_scores_, in_blocks_};
  }

  ScoredRows learned() const { return {targets_, weights_, scores_, n_rows_}; }

  void check_targets() const {
    const bool needs_doubles =
        options_.loss.kind == loss::LossKind::ranking || options_.loss.n_targets > 1;
    const bool watches = validation_.matrix != nullptr && validation_.matrix->n_rows() > 0;
    if (needs_doubles && ((n_rows_ > 0 && targets_.wide() == nullptr) ||
                          (watches && validation_.targets.wide() == nullptr))) {
      throw common::InputError("targets: expected float64 for this loss");
    }
  }

  // Rows whose mean loss is followed, of all workers: how many, what they weigh, and what their
  // largest loss was thought to be.
  struct Total {
    std::uint64_t n_rows = 0;
    double weight = 0;
    double bound = 0.75;
  };

  // Finds out what the workers have together.
  void meet() {
    if (exchange_ != nullptr &&
        (width_ > 1 || dynamic_cast<const table::BinnedMatrix*>(&matrix_) == nullptr)) {
      throw common::InputError(width_ > 1
                                   ? "several workers: expected one output, got several"
                                   : "several workers: expected max_bins to be a number, got None");
    }
    const bool watches = validation_.matrix != nullptr;
    double largest[2] = {largest_weight(weights_, rows_, n_rows_), 0};
    if (watches) {
      largest[1] = largest_weight(validation_.weights, &validation_.rows, 0);
    }
    common::find_max(exchange_, largest, 2);
    row_weights_.values = weights_;
    const auto is_whole = [](double weight) {
      return weight == std::floor(weight) && weight < 0x1p31;
    };
    const bool whole = weights_ != nullptr && std::all_of(weights_, weights_ + n_rows_, is_whole);
    std::int64_t n_repeated = 0;  // rows to learn from, repeated by their weights
    for (std::size_t i = 0; whole && i < n_learned_; ++i) {
      n_repeated += common::nearest(weights_[learned_row(i)]);
    }
    std::int64_t counts[4] = {static_cast<std::int64_t>(n_learned_), whole ? 0 : 1,
                              static_cast<std::int64_t>(watches ? validation_.rows.size() : 0),
                              n_repeated};
    add_up(exchange_, counts, 4);
    // Where every second derivative is 1 their sums are numbers of rows, if weights are.
    row_weights_.whole = counts[1] == 0;
    row_weights_.repeats =
        row_weights_.whole && counts[3] <= static_cast<std::int64_t>(table::max_cut_rows);
    learned_total_.n_rows = static_cast<std::uint64_t>(counts[0]);
    watched_total_.n_rows = static_cast<std::uint64_t>(counts[2]);
    workers_ = {exchange_, row_weights_.repeats ? static_cast<std::uint64_t>(counts[3])
                                                : learned_total_.n_rows};
    heaviest_ = largest[0];
    learned_total_.weight = sum_of_weights(weights_, rows_, n_rows_, largest[0], counts[0]);
    if (watches) {
      watched_total_.weight = sum_of_weights(validation_.weights, &validation_.rows,
                                             validation_.matrix->n_rows(), largest[1], counts[2]);
    }
  }

  // Of the given rows, all n if there are none given.
  static double largest_weight(const double* weights, const std::vector<Row>* rows, std::size_t n) {
    double largest = 0;
    if (weights == nullptr) return largest;
    if (rows == nullptr) {
      for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, weights[i]);
    } else {
      for (const Row row : *rows) largest = std::max(largest, weights[row]);
    }
    return largest;
  }

  double sum_of_weights(const double* weights, const std::vector<Row>* rows, std::size_t n_rows,
                        double largest, std::int64_t n_all) {
    if (weights == nullptr) return static_cast<double>(n_all);
    const double units = common::units_in_one(largest, static_cast<std::uint64_t>(n_all));
    std::int64_t sum = 0;
    const std::size_t n = rows == nullptr ? n_rows : rows->size();
    for (std::size_t i = 0; i < n; ++i) {
      sum += common::nearest(weights[rows == nullptr ? i : (*rows)[i]] * units);
    }
    add_up(exchange_, &sum, 1);
    return static_cast<double>(sum) / units;
  }

  // Whether the mean loss can be found along with the derivatives: both are about all rows.
  bool sums_on_the_way() const {
    return rows_ == nullptr && !options_.custom_derivatives &&
           options_.loss.kind != loss::LossKind::ranking;
  }

  // Returns the mean loss, if it is wanted.
  double find_gradients(bool with_loss) {
    if (options_.custom_derivatives) {
      options_.custom_derivatives(scores_, derivatives());
      return 0;
    }
    const ScoredRows data = learned();
    if (options_.loss.kind == loss::LossKind::ranking) {
      const std::size_t n_groups = options_.group_starts.size() - 1;
      const double work = 200.0 * static_cast<double>(n_rows_);
      parallel_for(
          n_groups, worthwhile_threads(work, options_.n_threads, true), [&](std::size_t g, int) {
            loss::rank_derivatives(options_.ranking, data.whole(), options_.group_starts[g],
                                   options_.group_starts[g + 1], derivatives());
          });
      return 0;
    }
    if (with_loss) {
      bool differentiated = false;
      return mean_of(learned_total_, [&](double units) {
        const loss::LossSum sum =
            differentiated ? sum_losses(data, units) : differentiate_and_sum_all(data, units);
        differentiated = true;
        return sum;
      });
    }
    by_blocks(n_rows_, 4.0 * static_cast<double>(n_scores_), options_.n_threads,
              [&](std::size_t, std::size_t begin, std::size_t end) {
                std::array<double, loss::row_block> room;
                loss::differentiate(options_.loss, data.piece(begin, end, room.data()), 0,
                                    end - begin, derivatives().from(begin));
              });
    return 0;
  }

  template <class Sum>
  loss::LossSum sum_blocks(std::size_t n, const Sum& sum) {
    std::vector<loss::LossSum> sums((n + loss::row_block - 1) / loss::row_block);
    by_blocks(n, 4.0 * static_cast<double>(n_scores_), options_.n_threads,
              [&](std::size_t block, std::size_t begin, std::size_t end) {
                sums[block] = sum(begin, end);
              });
    loss::LossSum total;
    for (const loss::LossSum& of_block : sums) total.add(of_block);
    return total;
  }

  loss::LossSum differentiate_and_sum_all(const ScoredRows& data, double units) {
    return sum_blocks(n_rows_, [&](std::size_t begin, std::size_t end) {
      std::array<double, loss::row_block> room;
      return loss::differentiate_and_sum(options_.loss, data.piece(begin, end, room.data()), 0,
                                         end - begin, units, derivatives().from(begin));
    });
  }

  loss::LossSum sum_losses(const ScoredRows& data, double units) {
    return sum_blocks(data.n_rows, [&](std::size_t begin, std::size_t end) {
      std::array<double, loss::row_block> room;
      return loss::loss_sum(options_.loss, data.piece(begin, end, room.data()), 0, end - begin,
                            units);
    });
  }

  // A weighted mean in fixed point. How fine it is follows from the largest term of all workers,
  // rounded up to a power of 256: that is guessed, most often rightly, and else added up again.
  template <class Sum>
  double mean_of(Total& total, const Sum& sum) {
    const std::size_t n_scores = options_.loss.is_separate() ? n_scores_ : std::size_t{1};
    for (;;) {
      const double units = common::units_in_one(total.bound, total.n_rows * n_scores);
      const loss::LossSum found = sum(units);
      const double bound = round_up(found.largest);
      // The guess is right if nobody has a larger term and somebody has one that needs it.
      std::int64_t told[3] = {found.units, bound > total.bound ? 1 : 0,
                              bound == total.bound ? 1 : 0};
      add_up(exchange_, told, 3);
      if (told[1] == 0 && told[2] > 0) {
        return static_cast<double>(told[0]) / units / static_cast<double>(n_scores) / total.weight;
      }
      double largest = found.largest;
      common::find_max(exchange_, &largest, 1);
      if (largest == 0) return 0;
      if (!(largest <= std::numeric_limits<double>::max())) return largest;
      total.bound = round_up(largest);
    }
  }

  // A number below a power of 256, and not below the next smaller one.
  static double round_up(double size) {
    if (size == 0 || !(size <= std::numeric_limits<double>::max())) return size;
    int exponent = 0;
    std::frexp(size, &exponent);
    const int step = exponent >= 0 ? (exponent + 7) / 8 : -(-exponent / 8);
    return std::ldexp(0.75, 8 * step);
  }

  bool samples_by_gradient() const {
    return options_.sampling == Sampling::gradient && options_.subsample < 1;
  }
  bool draws() const { return options_.subsample < 1; }

  void draw_rows(std::size_t round) {
    if (!draws()) return;
    drawn_.clear();
    left_out_.clear();
    common::Stream stream(options_.tree.seed, common::Purpose::rows, round);
    if (options_.sampling == Sampling::gradient) {
      draw_by_gradient(stream);
    } else {
      draw_evenly(stream);
    }
    auto n_drawn = static_cast<std::int64_t>(drawn_.size());
    add_up(exchange_, &n_drawn, 1);
    if (n_drawn > 0) return;
    drawn_.swap(left_out_);  // nobody drew a row: all count
    for (const Row row : drawn_) {
      if (options_.sampling == Sampling::gradient)
        drawn_weights_[row] = weights_ == nullptr ? 1.0 : weights_[row];
    }
  }

  Row learned_row(std::size_t i) const {
    return rows_ == nullptr ? static_cast<Row>(i) : (*rows_)[i];
  }

  // A row is drawn or not by its number in the whole table, whoever has it.
  void draw_evenly(const common::Stream& stream) {
    RowNumbers number(options_.row_ranges);
    for (std::size_t i = 0; i < n_learned_; ++i) {
      const Row row = learned_row(i);
      const bool drawn = stream.uniform_at(number(row)) < options_.subsample;
      (drawn ? drawn_ : left_out_).push_back(row);
    }
  }

  void draw_by_gradient(const common::Stream& stream) {
    const double curvature = options_.tree.split.l2_regularization;
    std::vector<double> sizes(n_learned_);
    double largest = 0;
    for (std::size_t i = 0; i < n_learned_; ++i) {
      const std::size_t row = learned_row(i);
      double sum = 0;
      for (std::size_t k = 0; k < n_scores_; ++k) {
        const auto g = static_cast<double>(derivatives().gradient[k * n_rows_ + row]);
        const auto h = static_cast<double>(derivatives().hessian[k * n_rows_ + row]);
        sum += g * g + curvature * h * h;
      }
      sizes[i] = std::sqrt(sum) * (weights_ == nullptr ? 1.0 : weights_[row]);
      largest = std::max(largest, sizes[i]);
    }
    common::find_max(exchange_, &largest, 1);
    const double units = common::units_in_one(largest, learned_total_.n_rows);
    std::vector<std::int64_t> of_row(n_learned_);
    for (std::size_t i = 0; i < n_learned_; ++i) {
      of_row[i] = std::min(common::nearest(sizes[i] * units), (std::int64_t{1} << 50) - 1);
    }
    const double wanted = options_.subsample * static_cast<double>(learned_total_.n_rows);
    const double certain = certain_size(of_row, wanted, exchange_);
    drawn_weights_.resize(n_rows_);
    RowNumbers number(options_.row_ranges);
    for (std::size_t i = 0; i < n_learned_; ++i) {
      const Row row = learned_row(i);
      const double chance =
          certain > 0 ? std::min(1.0, static_cast<double>(of_row[i]) / certain) : 1.0;
      if (stream.uniform_at(number(row)) < chance) {
        drawn_.push_back(row);
        drawn_weights_[row] = (weights_ == nullptr ? 1.0 : weights_[row]) / chance;
      } else {
        left_out_.push_back(row);
      }
    }
  }

  struct Grower {
    std::unique_ptr<RoundBuilder> builder;
    std::vector<common::NodeIndex> leaf_of;
    int n_threads = 1;
  };

  forest::CompactTree grow_tree(Grower& grower, std::size_t round, std::size_t k,
                                common::Watch& watch) {
    const std::vector<Row>* const learned = draws() ? &drawn_ : rows_;
    RowWeights row_weights = row_weights_;
    if (samples_by_gradient()) row_weights = {drawn_weights_.data(), false};
    const Row* const rows = learned == nullptr ? nullptr : learned->data();
    const std::size_t n = learned == nullptr ? n_rows_ : learned->size();
    const loss::Derivatives of = in_blocks_ ? derivatives() : derivatives().from(k * n_rows_);
    grower.builder->grow({round * n_trees_ + k, rows, n, of, row_weights, constant_hessian_},
                         watch);
    forest::Tree& tree = grower.builder->tree();
    double* const scores = scores_ + k * n_rows_;
    std::uint64_t n_all = workers_.n_rows;
    if (draws()) n_all = exchange_ == nullptr ? n : static_cast<std::uint64_t>(tree.n_rows[0]);
    // With few rows it costs nothing; with many the packed sums err by less than a millionth.
    if (n_all <= few_rows) grower.builder->refine_leaves(of);
    if (options_.loss.uses_line_search() && !options_.custom_derivatives)
      refit(grower, options_.loss.of_score(k), row_weights, scores);
    for (double& value : tree.value) value *= options_.learning_rate;
    update(grower, scores);
    if (draws()) follow(grower, matrix_, left_out_, scores);
    if (validation_.matrix != nullptr) {
      follow(grower, *validation_.matrix, validation_.rows,
             validation_.scores + k * validation_.matrix->n_rows());
    }
    return forest::compact(tree, forest_.shape, forest_.n_categories);
  }

  void refit(Grower& grower, const loss::Loss& loss, const RowWeights& of_rows,
             const double* scores) {
    const double* const row_weights = of_rows.values;
    forest::Tree& tree = grower.builder->tree();
    const std::vector<LeafRows>& leaves = grower.builder->leaves();
    const double work = 10.0 * static_cast<double>(n_learned_);
    const int threads = worthwhile_threads(work, grower.n_threads, true);
    double heaviest = heaviest_;
    if (samples_by_gradient()) {
      heaviest = 0;
      for (const Row row : drawn_) heaviest = std::max(heaviest, row_weights[row]);
      common::find_max(exchange_, &heaviest, 1);
    }
    if (of_rows.repeats) heaviest = 1;
    const double units = of_rows.repeats ? 1.0 : common::units_in_one(heaviest, workers_.n_rows);
    std::vector<LeafResiduals> of(leaves.size());
    parallel_for(leaves.size(), threads, [&](std::size_t i, int) {
      const LeafRows& leaf = leaves[i];
      const std::size_t n = leaf.end - leaf.begin;
      of[i].residuals.resize(n);
      if (row_weights != nullptr) of[i].weights.resize(n);
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t row = leaf.rows == nullptr ? j : leaf.rows[j];
        of[i].residuals[j] = targets_[row] - scores[row] + 0.0;  // −0 becomes 0
        if (row_weights != nullptr) {
          of[i].weights[j] = std::max<std::int64_t>(1, common::nearest(row_weights[row] * units));
        }
      }
    });
    const double heaviest_units = row_weights == nullptr ? 1.0 : heaviest * units;
    const std::vector<double> steps =
        refit_leaves(loss, of, heaviest_units, of_rows.repeats, workers_, threads);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      tree.value[static_cast<std::size_t>(leaves[i].node)] =
          std::clamp(steps[i], leaves[i].bounds.low, leaves[i].bounds.high);
    }
  }

  void update(Grower& grower, double* scores) {
    const forest::Tree& tree = grower.builder->tree();
    struct Piece {
      const LeafRows* leaf;
      std::size_t begin;
      std::size_t end;
    };
    std::vector<Piece> pieces;
    for (const LeafRows& leaf : grower.builder->leaves()) {
      const std::size_t n = leaf.end - leaf.begin;
      for (std::size_t at = 0; at < n; at += loss::row_block) {
        pieces.push_back({&leaf, at, std::min(n, at + loss::row_block)});
      }
    }
    const double work = 1.5 * static_cast<double>(n_learned_);
    parallel_for(pieces.size(), worthwhile_threads(work, grower.n_threads, true),
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
  void follow(Grower& grower, const table::RowMatrix& matrix, const std::vector<Row>& rows,
              double* scores) {
    const forest::Tree& tree = grower.builder->tree();
    grower.leaf_of.resize(rows.size());
    grower.builder->find_leaves(matrix, rows.data(), rows.size(), grower.leaf_of.data());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto leaf = static_cast<std::size_t>(grower.leaf_of[i]);
      for (std::size_t k = 0; k < width_; ++k) {
        scores[k * matrix.n_rows() + rows[i]] += tree.value[leaf * width_ + k];
      }
    }
  }

  // Over the given rows, all if null.
  double mean_loss(const ScoredRows& data, const std::vector<Row>* rows,
                   const std::vector<std::uint32_t>& groups, Total& total) {
    if (options_.loss.kind == loss::LossKind::ranking) {
      return mean_rank_loss(data, rows, groups, total);
    }
    if (rows != nullptr && rows->size() < data.n_rows) return mean_loss_of(data, *rows, total);
    return mean_of(total, [&](double units) { return sum_losses(data, units); });
  }

  // Mean over groups whose rows are among the given ones.
  double mean_rank_loss(const ScoredRows& data, const std::vector<Row>* rows,
                        const std::vector<std::uint32_t>& groups, Total& total) {
    std::vector<double> losses(groups.size() - 1);
    parallel_for(
        losses.size(),
        worthwhile_threads(50.0 * static_cast<double>(data.n_rows), options_.n_threads, true),
        [&](std::size_t g, int) {
          losses[g] = loss::rank_loss(options_.ranking, data.whole(), groups[g], groups[g + 1]);
        });
    const auto is_meant = [&](std::size_t g) {
      return !std::isnan(losses[g]) &&
             (rows == nullptr || std::binary_search(rows->begin(), rows->end(), groups[g]));
    };
    std::int64_t n = 0;
    for (std::size_t g = 0; g < losses.size(); ++g) n += is_meant(g) ? 1 : 0;
    add_up(exchange_, &n, 1);
    if (n == 0) return 0;
    Total of_groups{static_cast<std::uint64_t>(n), static_cast<double>(n), total.bound};
    const double mean = mean_of(of_groups, [&](double units) {
      loss::LossSum sum;
      for (std::size_t g = 0; g < losses.size(); ++g) {
        if (is_meant(g)) sum.add({common::nearest(losses[g] * units), std::abs(losses[g])});
      }
      return sum;
    });
    total.bound = of_groups.bound;
    return mean;
  }

  // Rows here and there: copied side by side first, a block at a time.
  double mean_loss_of(const ScoredRows& data, const std::vector<Row>& rows, Total& total) {
    const std::size_t n_targets = options_.loss.n_targets;
    const auto sum_some = [&](std::size_t begin, std::size_t end, double units) {
      const std::size_t n = end - begin;
      std::vector<double> targets(n * n_targets);
      std::vector<double> weights(data.weights == nullptr ? 0 : n);
      std::vector<double> scores(n * n_scores_);
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t row = rows[begin + i];
        for (std::size_t k = 0; k < n_targets; ++k) {
          targets[k * n + i] = data.targets[k * data.n_rows + row];
        }
        if (data.weights != nullptr) weights[i] = data.weights[row];
        for (std::size_t k = 0; k < n_scores_; ++k) {
          scores[k * n + i] = data.scores[k * data.n_rows + row];
        }
      }
      const double* const given = data.weights == nullptr ? nullptr : weights.data();
      const loss::LossData some{targets.data(), given, scores.data(), n};
      return loss::loss_sum(options_.loss, some, 0, n, units);
    };
    return mean_of(total, [&](double units) {
      return sum_blocks(rows.size(), [&](std::size_t begin, std::size_t end) {
        return sum_some(begin, end, units);
      });
    });
  }

  const table::RowMatrix& matrix_;
  const std::vector<Row>* rows_;  // null: all
  loss::LossTargets targets_;
  const double* weights_;
  double* scores_;
  Validation& validation_;
  const BoostOptions& options_;
  common::Exchange* exchange_;
  forest::Forest& forest_;
  std::size_t n_side_by_side_ = 0;  // trees of a round that threads grow one each
  std::vector<Grower> growers_;     // for these
  Grower together_;                 // for the others, with all threads
  std::size_t n_rows_;
  std::size_t n_scores_;
  std::size_t width_;    // weights of a leaf
  std::size_t n_trees_;  // of a round
  std::size_t n_learned_ = 0;
  Workers workers_;
  Total learned_total_;
  Total watched_total_;
  RowWeights row_weights_;
  double heaviest_ = 0;  // weight of a row, of all workers
  bool constant_hessian_ = false;
  bool in_blocks_ = false;                 // the derivatives
  common::LargeArray<float> derivatives_;  // first ones, then second ones
  std::vector<Row> drawn_;
  std::vector<Row> left_out_;
  std::vector<double> drawn_weights_;  // of rows drawn by their gradients
};

}  // namespace

void boost(const table::RowMatrix& matrix, const std::vector<Row>* rows,
           const loss::LossTargets& targets, const double* weights, double* scores,
           Validation& validation, const BoostOptions& options, forest::Forest& forest,
           BoostHistory& history, common::Watch& watch) {
  Boosting boosting(matrix, rows, targets, weights, scores, validation, options, forest);
  if (options.n_rounds == 0) boosting.note(history, true);
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
