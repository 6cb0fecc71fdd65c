#include <string>
#include <utility>

#include "bits.h"
#include "spinney/boosting/booster.h"
#include "spinney/forest/forest_state.h"
#include "spinney/serving/scorers.h"
#include "spinney/table/binned_matrix.h"
#include "spinney/table/exact_matrix.h"

namespace bits {

using namespace spinney;
using boosting::BoostOptions;
using boosting::Growth;
using loss::LossKind;

namespace {

BoostOptions default_options() {
  BoostOptions options;
  options.n_rounds = 8;
  options.n_threads = n_threads;
  options.learning_rate = 0.3;
  options.tree.max_leaf_nodes = 12;
  options.tree.seed = 11;
  options.tree.split.min_samples_leaf = 4;
  options.tree.split.l2_regularization = 1;
  return options;
}

// How leaves and rows are stored.
enum class Storage { bins, exact, vector_leaves };

void fit_boosting(Hash& hash, const BoostOptions& options, const double* targets,
                  const double* weights, Storage storage) {
  const table::Table table = train().table();
  const table::BinnedMatrix bins(table, 60, n_threads);
  const table::ExactMatrix exact(table, true, n_threads);
  const table::RowMatrix& matrix =
      storage == Storage::exact ? static_cast<const table::RowMatrix&>(exact) : bins;
  const std::size_t n_scores = options.loss.n_scores;
  forest::Forest forest;
  forest.shape.inner_values = true;
  forest.n_categories = train().n_categories();
  if (storage == Storage::vector_leaves) forest.shape.n_outputs = n_scores;
  std::vector<double> scores(table.n_rows * n_scores);
  boosting::Validation none;
  boosting::BoostHistory history;
  common::Watch watch;
  boosting::boost(matrix, nullptr, targets, weights, scores.data(), none, options, forest, history,
                  watch);
  forest::ForestState state = forest::to_state(forest);
  state.visit([&](const char*, const auto& array) { hash.add(array); });
  hash.add(scores);
  hash.add(history.train);
  std::vector<double> predicted(test().n_rows * n_scores);
  serving::add_rounds(forest, test().table(), storage == Storage::vector_leaves ? 1 : n_scores, 0,
                      options.n_rounds, n_threads, predicted.data());
  hash.add(predicted);
}

}  // namespace

void print_boosting() {
  struct NamedLoss {
    const char* name;
    LossKind kind;
    double parameter;
    std::size_t n_scores;
    const std::vector<double>* targets;
  };
  const std::vector<NamedLoss> losses = {
      {"squared_error", LossKind::squared_error, 0, 1, &train().y},
      {"absolute_error", LossKind::absolute_error, 0, 1, &train().y},
      {"huber", LossKind::huber, 0.9, 1, &train().y},
      {"quantile", LossKind::quantile, 0.8, 1, &train().y},
      {"poisson", LossKind::poisson, 0, 1, &train().positive},
      {"gamma", LossKind::gamma, 0, 1, &train().positive},
      {"tweedie", LossKind::tweedie, 1.5, 1, &train().positive},
      {"log_loss", LossKind::log_loss, 0, 1, &train().sides},
      {"exponential", LossKind::exponential, 0, 1, &train().sides},
      {"softmax", LossKind::softmax, 0, 3, &train().classes}};
  for (const NamedLoss& with : losses) {
    BoostOptions options = default_options();
    options.loss.kind = with.kind;
    options.loss.parameter = with.parameter;
    options.loss.n_scores = with.n_scores;
    const std::string prefix = std::string("boosting ") + with.name;
    const auto run = [&](const std::string& variant, const BoostOptions& given,
                         const double* weights = nullptr, Storage storage = Storage::bins) {
      print(prefix + " " + variant,
            [&](Hash& hash) { fit_boosting(hash, given, with.targets->data(), weights, storage); });
    };
    for (const auto& [name, growth] :
         {std::pair{"best_first", Growth::best_first}, std::pair{"level_wise", Growth::level_wise},
          std::pair{"oblivious", Growth::oblivious}}) {
      BoostOptions grown = options;
      grown.tree.growth = growth;
      run(name, grown);
      if (growth == Growth::oblivious) continue;  // needs bins
      run(std::string(name) + " exact", grown, nullptr, Storage::exact);
    }
    run("weights", options, train().fractions.data());
    run("whole weights", options, train().weights.data());
    BoostOptions sampled = options;
    sampled.subsample = 0.6;
    sampled.tree.max_features_tree = 0.8;
    sampled.tree.max_features = 0.7;
    run("sampled", sampled);
    sampled.sampling = boosting::Sampling::gradient;
    run("sampled by gradient", sampled, train().fractions.data());
    if (with.n_scores > 1) run("vector leaves", options, nullptr, Storage::vector_leaves);
  }

  const auto run = [](const char* name, const BoostOptions& options, const double* targets,
                      Storage storage = Storage::bins) {
    print(std::string("boosting ") + name,
          [&](Hash& hash) { fit_boosting(hash, options, targets, nullptr, storage); });
  };
  BoostOptions constrained = default_options();
  constrained.tree.split.monotonic_cst = {1, 0, -1, 0, 0, 0, 1, 0};
  constrained.tree.interaction_cst = {{0, 1, 7}, {2, 3, 4}};
  constrained.tree.split.l1_regularization = 0.5;
  run("constraints", constrained, train().y.data());
  run("constraints exact", constrained, train().y.data(), Storage::exact);
  BoostOptions outputs = default_options();
  outputs.loss.n_scores = outputs.loss.n_targets = 2;
  run("two targets", outputs, train().two.data());
  run("two targets vector leaves", outputs, train().two.data(), Storage::vector_leaves);
  BoostOptions levels = default_options();
  levels.loss.kind = LossKind::quantile;
  levels.loss.n_scores = 2;
  levels.loss.levels = {0.1, 0.9};
  run("two quantiles", levels, train().y.data());
  BoostOptions ranking = default_options();
  ranking.loss.kind = LossKind::ranking;
  for (std::uint32_t row = 0; row < train().n_rows; row += 35) ranking.group_starts.push_back(row);
  ranking.group_starts.push_back(static_cast<std::uint32_t>(train().n_rows));
  run("ndcg", ranking, train().classes.data());
  ranking.ranking.by_gain = false;
  run("pairwise", ranking, train().classes.data());
}

}  // namespace bits
