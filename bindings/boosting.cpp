#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <variant>

#include "bindings.h"
#include "spinney/boosting/booster.h"
#include "spinney/common/check.h"
#include "spinney/serving/scorers.h"
#include "spinney/table/binned_matrix.h"
#include "spinney/table/exact_matrix.h"
#include "table.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

loss::LossKind loss_named(const std::string& name) {
  if (name == "squared_error") return loss::LossKind::squared_error;
  if (name == "absolute_error") return loss::LossKind::absolute_error;
  if (name == "huber") return loss::LossKind::huber;
  if (name == "quantile") return loss::LossKind::quantile;
  if (name == "poisson") return loss::LossKind::poisson;
  if (name == "gamma") return loss::LossKind::gamma;
  if (name == "tweedie") return loss::LossKind::tweedie;
  if (name == "log_loss") return loss::LossKind::log_loss;
  if (name == "exponential") return loss::LossKind::exponential;
  if (name == "softmax") return loss::LossKind::softmax;
  if (name == "ndcg" || name == "pairwise") return loss::LossKind::ranking;
  throw unknown_name("loss", name,
                     {"squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma",
                      "tweedie", "log_loss", "exponential", "softmax", "ndcg", "pairwise"});
}

boosting::Growth growth_named(const std::string& name) {
  if (name == "level_wise") return boosting::Growth::level_wise;
  if (name == "oblivious") return boosting::Growth::oblivious;
  if (name == "best_first") return boosting::Growth::best_first;
  throw unknown_name("growth", name, {"best_first", "level_wise", "oblivious"});
}

boosting::Sampling sampling_named(const std::string& name) {
  if (name == "uniform") return boosting::Sampling::uniform;
  if (name == "gradient") return boosting::Sampling::gradient;
  throw unknown_name("sampling", name, {"uniform", "gradient"});
}

serving::Link link_named(const std::string& name) {
  if (name == "exponential") return serving::Link::exponential;
  if (name == "probability") return serving::Link::probability;
  if (name == "logistic") return serving::Link::logistic;
  if (name == "twice_logistic") return serving::Link::twice_logistic;
  if (name == "softmax") return serving::Link::softmax;
  if (name == "identity") return serving::Link::identity;
  throw unknown_name(
      "link", name,
      {"identity", "exponential", "probability", "logistic", "twice_logistic", "softmax"});
}

// Throws InputError unless the forest has scores and n_rounds rounds of n_scores trees.
void check_rounds(const forest::Forest& forest, std::size_t n_rounds, std::size_t n_scores) {
  if (criterion::is_classification(forest.shape.criterion)) {
    throw common::InputError("forest: expected trees of scores, got trees of classes");
  }
  if (n_scores == 0 || n_rounds > forest.trees.size() / n_scores) {
    throw common::InputError("rounds: expected at most " +
                             std::to_string(n_scores == 0 ? 0 : forest.trees.size() / n_scores) +
                             ", got " + std::to_string(n_rounds));
  }
}

struct BoundScorer {
  nb::object forest;  // kept alive
  serving::RowScorer scorer;
};

// Targets in the smallest type that holds them.
using TargetArray = std::variant<Array<double>, Array<float>, Array<std::uint8_t>>;

loss::LossTargets view_targets(const TargetArray& given) {
  return std::visit([](const auto& values) { return loss::LossTargets(values.data()); }, given);
}

// Validation rows with the arrays that they view.
struct BoundValidation {
  std::shared_ptr<table::RowMatrix> matrix;
  nb::object targets, weights, scores;  // kept alive
  boosting::Validation validation;
};

// All-reduce by a Python object with add(array of int64) and max(array of float64), which change
// the array in place.
class PythonExchange : public common::Exchange {
 public:
  explicit PythonExchange(nb::object object) : object_(std::move(object)) {}

  void add(std::int64_t* values, std::size_t n) override { call("add", values, n); }
  void max(double* values, std::size_t n) override { call("max", values, n); }

 private:
  template <class T>
  void call(const char* name, T* values, std::size_t n) {
    const nb::gil_scoped_acquire acquire;
    using View = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
    // The array does not own the memory, which lives as long as the call.
    object_.attr(name)(nb::cast(View(values, {n}, nb::handle()), nb::rv_policy::reference));
  }

  nb::object object_;
};

// Derivatives of a loss that is a Python function, which returns (gradient, hessian).
void read_derivatives(const nb::object& function, std::size_t n, const loss::Derivatives& out) {
  const nb::gil_scoped_acquire acquire;
  const auto found = nb::cast<nb::tuple>(function());
  const auto gradient = nb::cast<Array<double>>(found[0]);
  const auto hessian = nb::cast<Array<double>>(found[1]);
  if (gradient.size() != n || hessian.size() != n) {
    throw common::InputError("loss: expected a gradient and a hessian for every row");
  }
  for (std::size_t i = 0; i < n; ++i) {
    out.gradient[i] = static_cast<float>(gradient.data()[i]);
    out.hessian[i] = static_cast<float>(hessian.data()[i]);
  }
}

nb::tuple run_boost(const std::shared_ptr<table::RowMatrix>& matrix,
                    const std::optional<Array<std::uint32_t>>& rows, const TargetArray& targets,
                    const std::optional<Array<double>>& weights, const OutArray<double>& scores,
                    BoundValidation* validation, boosting::BoostOptions options,
                    forest::Forest& forest, std::size_t first_round, std::size_t n_rounds,
                    int n_threads, const nb::object& custom_derivatives, const nb::object& exchange,
                    const nb::object& after_round) {
  std::vector<common::Row> train_rows;
  if (rows) train_rows.assign(rows->data(), rows->data() + rows->size());
  for (const common::Row row : train_rows) {
    if (row >= matrix->n_rows())
      throw common::InputError("rows: " + std::to_string(row) + " is not a row of the table");
  }
  options.first_round = first_round;
  options.n_rounds = n_rounds;
  options.n_threads = n_threads;
  std::optional<PythonExchange> workers;
  if (!exchange.is_none()) options.exchange = &workers.emplace(exchange);
  if (!after_round.is_none()) {
    options.after_round = [&](std::size_t round) {
      const nb::gil_scoped_acquire acquire;
      after_round(round);
    };
  }
  if (!custom_derivatives.is_none()) {
    options.custom_derivatives = [&](const double*, const loss::Derivatives& out) {
      read_derivatives(custom_derivatives, matrix->n_rows() * options.loss.n_scores, out);
    };
  }
  boosting::BoostHistory history;
  common::Watch watch(make_hook(nb::none()), n_rounds);
  {
    const nb::gil_scoped_release release;
    boosting::Validation none;
    boosting::boost(*matrix, rows ? &train_rows : nullptr, view_targets(targets),
                    weights ? weights->data() : nullptr, scores.data(),
                    validation == nullptr ? none : validation->validation, options, forest, history,
                    watch);
  }
  return nb::make_tuple(to_numpy(std::move(history.train)),
                        to_numpy(std::move(history.validation)));
}

// The options of a booster from keyword arguments with the names of the Python parameters.
void create_options(boosting::BoostOptions* self, const std::string& loss, double loss_parameter,
                    std::size_t n_scores, std::size_t n_targets, std::vector<double> levels,
                    std::vector<std::uint32_t> group_starts, const std::string& growth,
                    std::optional<std::size_t> max_leaf_nodes, std::optional<std::size_t> max_depth,
                    double max_features_tree, double max_features_level, double max_features,
                    std::vector<std::vector<std::uint32_t>> interaction_cst, std::uint64_t seed,
                    double l2_regularization, double l1_regularization, double min_split_gain,
                    double min_hessian_leaf, std::size_t min_samples_leaf,
                    std::vector<std::int8_t> monotonic_cst, double learning_rate, double subsample,
                    const std::string& sampling,
                    const std::vector<std::pair<std::size_t, std::uint64_t>>& row_ranges) {
  boosting::BoostOptions options;
  options.loss = {.kind = loss_named(loss),
                  .parameter = loss_parameter,
                  .n_scores = n_scores,
                  .n_targets = n_targets,
                  .levels = std::move(levels)};
  options.ranking.by_gain = loss == "ndcg";
  if (options.ranking.by_gain) options.ranking.ndcg_at = static_cast<std::size_t>(loss_parameter);
  options.group_starts = std::move(group_starts);
  options.tree = {
      .split = {.l2_regularization = l2_regularization,
                .l1_regularization = l1_regularization,
                .min_split_gain = min_split_gain,
                .min_hessian_leaf = min_hessian_leaf,
                .min_samples_leaf = min_samples_leaf,
                .monotonic_cst = std::move(monotonic_cst),
                .cuts = {}},
      .growth = growth_named(growth),
      .max_leaf_nodes = max_leaf_nodes.value_or(boosting::unlimited),
      .max_depth = max_depth.value_or(boosting::unlimited),
      .max_features_tree = max_features_tree,
      .max_features_level = max_features_level,
      .max_features = max_features,
      .interaction_cst = std::move(interaction_cst),
      .seed = seed,
  };
  options.learning_rate = learning_rate;
  options.subsample = subsample;
  options.sampling = sampling_named(sampling);
  for (const auto& [begin, number] : row_ranges) options.row_ranges.push_back({begin, number});
  boosting::check_options(options);
  new (self) boosting::BoostOptions(std::move(options));
}

}  // namespace

void bind_boosting(nb::module_& m) {
  nb::class_<table::RowMatrix>(m, "RowMatrix");
  nb::class_<table::ExactMatrix, table::RowMatrix>(m, "ExactMatrix")
      .def("derive", &table::ExactMatrix::derive, nb::arg("column"), nb::arg("source"),
           nb::arg("of_category"));
  m.def(
      "exact_table",
      [](const BoundTable& bound, bool sorted, int n_threads) {
        const nb::gil_scoped_release release;
        return std::make_shared<table::ExactMatrix>(bound.table, sorted, n_threads);
      },
      nb::arg("table"), nb::arg("sorted"), nb::arg("n_threads"));
  nb::class_<table::BinnedMatrix, table::RowMatrix>(m, "BinnedMatrix")
      .def("derive", &table::BinnedMatrix::derive, nb::arg("column"), nb::arg("source"),
           nb::arg("of_category"))
      .def_prop_ro("n_codes", &table::BinnedMatrix::n_codes)
      // A worker's table, step by step: write the rows, block by block; …
      .def(
          "write",
          [](table::BinnedMatrix& self, const BoundTable& bound, std::size_t first, int n_threads) {
            const nb::gil_scoped_release release;
            self.write(bound.table, first, n_threads);
          },
          nb::arg("block"), nb::arg("first"), nb::arg("n_threads"))
      // … return which columns have missing values; …
      .def("missing",
           [](const table::BinnedMatrix& self) {
             std::vector<std::int64_t> missing;
             for (std::size_t f = 0; f < self.n_features(); ++f) {
               missing.push_back(self.column(f).has_missing ? 1 : 0);
             }
             return to_numpy(std::move(missing));
           })
      // … and set how many workers' rows have some (the sum over all workers).
      .def(
          "complete",
          [](table::BinnedMatrix& self, const Array<std::int64_t>& missing) {
            self.complete(view(missing));
          },
          nb::arg("missing"))
      // Numbers of rows with each code, one column after another: of this worker's rows, …
      .def("count_codes",
           [](const table::BinnedMatrix& self) { return to_numpy(self.code_counts()); })
      // … and of the whole table.
      .def(
          "set_code_counts",
          [](table::BinnedMatrix& self, const Array<std::int64_t>& counts) {
            self.set_code_counts(view(counts));
          },
          nb::arg("counts"));
  m.def(
      "bin_table",
      [](const BoundTable& bound, std::uint32_t max_bins, int n_threads,
         const std::optional<Array<std::uint32_t>>& among,
         const std::optional<Array<double>>& weights) {
        if (weights && weights->size() != bound.table.n_rows) {
          throw common::InputError("weights: expected one per row");
        }
        std::span<const common::Row> rows;
        if (among) rows = {among->data(), among->size()};
        for (const common::Row row : rows) {
          if (row >= bound.table.n_rows)
            throw common::InputError("among: " + std::to_string(row) +
                                     " is not a row of the table");
        }
        const nb::gil_scoped_release release;
        return std::make_shared<table::BinnedMatrix>(bound.table, max_bins, n_threads, rows,
                                                     weights ? weights->data() : nullptr);
      },
      nb::arg("table"), nb::arg("max_bins"), nb::arg("n_threads"),
      nb::arg("among").none() = nb::none(), nb::arg("weights").none() = nb::none());
  m.def(
      "bin_given",
      [](const nb::list& given, std::size_t n_rows) {
        std::vector<table::BinnedColumn> bins;
        for (const nb::handle item : given) {
          const auto one = nb::cast<nb::tuple>(item);  // (categorical, cuts or bins of categories)
          table::BinnedColumn column;
          column.categorical = nb::cast<bool>(one[0]);
          if (column.categorical) {
            const auto of = nb::cast<Array<std::uint8_t>>(one[1]);
            column.bin_of.assign(of.data(), of.data() + of.size());
            std::uint32_t n_bins = 1;
            for (const std::uint8_t bin : column.bin_of) n_bins = std::max(n_bins, bin + 1U);
            column.n_bins = n_bins;
          } else {
            const auto cuts = nb::cast<Array<double>>(one[1]);
            column.cuts.assign(cuts.data(), cuts.data() + cuts.size());
            if (!std::is_sorted(column.cuts.begin(), column.cuts.end())) {
              throw common::InputError("bins: expected ascending cuts");
            }
            column.n_bins = static_cast<std::uint32_t>(column.cuts.size() + 1);
          }
          bins.push_back(std::move(column));
        }
        const nb::gil_scoped_release release;
        return std::make_shared<table::BinnedMatrix>(std::move(bins), n_rows);
      },
      nb::arg("bins"), nb::arg("n_rows"));
  using Units = std::optional<Array<std::uint64_t>>;
  const auto find_cuts_of = [](const auto& values, std::uint32_t max_bins, const Units& units) {
    if (max_bins < 2 || max_bins > 255) throw common::InputError("max_bins: expected 2 to 255");
    if (units && units->size() != values.size()) {
      throw common::InputError("units: expected one per value");
    }
    std::vector<double> cuts;
    {
      const nb::gil_scoped_release release;
      cuts = units ? table::find_weighted_cuts(view(values), view(*units), max_bins)
                   : table::find_cuts(view(values), max_bins);
    }
    return to_numpy(std::move(cuts));
  };
  m.def(
      "find_cuts",
      [=](const Array<float>& values, std::uint32_t max_bins, const Units& units) {
        return find_cuts_of(values, max_bins, units);
      },
      nb::arg("values").noconvert(), nb::arg("max_bins"), nb::arg("units").none() = nb::none());
  m.def(
      "find_cuts",
      [=](const Array<double>& values, std::uint32_t max_bins, const Units& units) {
        return find_cuts_of(values, max_bins, units);
      },
      nb::arg("values").noconvert(), nb::arg("max_bins"), nb::arg("units").none() = nb::none());
  m.def(
      "weight_units",
      [](const Array<double>& weights, double largest, std::uint64_t n) {
        return to_numpy(table::weight_units(view(weights), largest, n));
      },
      nb::arg("weights"), nb::arg("largest"), nb::arg("n"));
  m.def(
      "bin_categories",
      [](const Array<std::uint64_t>& counts, std::uint32_t max_bins) {
        if (max_bins < 2 || max_bins > 255) throw common::InputError("max_bins: expected 2 to 255");
        return to_numpy(table::bin_categories(view(counts), max_bins));
      },
      nb::arg("counts"), nb::arg("max_bins"));
  m.def(
      "sample_rows", [](std::uint64_t n_rows) { return to_numpy(table::sample_rows(n_rows)); },
      nb::arg("n_rows"));
  m.def(
      "bin_like",
      [](const BoundTable& bound, const std::shared_ptr<table::BinnedMatrix>& like, int n_threads) {
        const nb::gil_scoped_release release;
        return std::make_shared<table::BinnedMatrix>(bound.table, *like, n_threads);
      },
      nb::arg("table"), nb::arg("like"), nb::arg("n_threads"));

  nb::class_<boosting::BoostOptions>(m, "BoostOptions")
      .def("__init__", &create_options, nb::kw_only(), nb::arg("loss"), nb::arg("loss_parameter"),
           nb::arg("n_scores"), nb::arg("n_targets"), nb::arg("levels"), nb::arg("group_starts"),
           nb::arg("growth"), nb::arg("max_leaf_nodes").none(), nb::arg("max_depth").none(),
           nb::arg("max_features_tree"), nb::arg("max_features_level"), nb::arg("max_features"),
           nb::arg("interaction_cst"), nb::arg("seed"), nb::arg("l2_regularization"),
           nb::arg("l1_regularization"), nb::arg("min_split_gain"), nb::arg("min_hessian_leaf"),
           nb::arg("min_samples_leaf"), nb::arg("monotonic_cst"), nb::arg("learning_rate"),
           nb::arg("subsample"), nb::arg("sampling"), nb::arg("row_ranges"));

  nb::class_<BoundValidation>(m, "BoostValidation")
      .def(
          "__init__",
          [](BoundValidation* self, const std::shared_ptr<table::RowMatrix>& matrix,
             const Array<std::uint32_t>& rows, const TargetArray& targets,
             const std::optional<Array<double>>& weights, const OutArray<double>& scores,
             std::vector<std::uint32_t> group_starts) {
            auto* made = new (self)
                BoundValidation{matrix,
                                std::visit([](const auto& of) { return nb::cast(of); }, targets),
                                weights ? nb::cast(*weights) : nb::none(),
                                nb::cast(scores),
                                {}};
            made->validation = {matrix.get(),          {rows.data(), rows.data() + rows.size()},
                                view_targets(targets), weights ? weights->data() : nullptr,
                                scores.data(),         std::move(group_starts)};
          },
          nb::arg("matrix"), nb::arg("rows"), nb::arg("targets").noconvert(),
          nb::arg("weights").none(), nb::arg("scores"),
          nb::arg("group_starts") = std::vector<std::uint32_t>());

  m.def("boost", &run_boost, nb::arg("matrix"), nb::arg("rows").none(),
        nb::arg("targets").noconvert(), nb::arg("weights").none(), nb::arg("scores"),
        nb::arg("validation").none(), nb::arg("options"), nb::arg("forest"), nb::kw_only(),
        nb::arg("first_round"), nb::arg("n_rounds"), nb::arg("n_threads"),
        nb::arg("custom_derivatives").none() = nb::none(), nb::arg("exchange").none() = nb::none(),
        nb::arg("after_round").none() = nb::none());

  m.def(
      "add_rounds",
      [](const forest::Forest& forest, const BoundTable& bound, std::size_t n_scores,
         std::size_t first, std::size_t last, int n_threads, const OutArray<double>& out) {
        check_rounds(forest, last, n_scores);
        const std::size_t width = forest.shape.width();
        if (first > last || (width > 1 && n_scores > 1) ||
            out.size() != bound.table.n_rows * n_scores * width) {
          throw common::InputError("add_rounds: expected out of shape (n_rows, n_scores)");
        }
        const nb::gil_scoped_release release;
        serving::add_rounds(forest, bound.table, n_scores, first, last, n_threads, out.data());
      },
      nb::arg("forest"), nb::arg("table"), nb::arg("n_scores"), nb::arg("first"), nb::arg("last"),
      nb::arg("n_threads"), nb::arg("out"));

  m.def(
      "append_mean",
      [](const std::vector<const forest::Forest*>& forests, std::size_t n_rounds,
         std::size_t n_scores, forest::Forest& out) {
        for (const forest::Forest* const forest : forests) {
          check_rounds(*forest, n_rounds, n_scores);
        }
        boosting::append_mean(forests, n_rounds, n_scores, out);
      },
      nb::arg("forests"), nb::arg("n_rounds"), nb::arg("n_scores"), nb::arg("out"));

  nb::class_<BoundScorer>(m, "RowScorer")
      .def(
          "__init__",
          [](BoundScorer* self, const nb::object& forest, std::vector<double> baseline,
             std::size_t n_rounds, const std::string& link) {
            const forest::Forest& trees = nb::cast<const forest::Forest&>(forest);
            const std::size_t width = trees.shape.width();
            check_rounds(trees, n_rounds, width > 1 ? 1 : baseline.size());
            if (width > 1 && baseline.size() != width) {
              throw common::InputError("RowScorer: expected one baseline per score");
            }
            new (self)
                BoundScorer{forest, {trees, std::move(baseline), n_rounds, link_named(link)}};
          },
          nb::arg("forest"), nb::arg("baseline"), nb::arg("n_rounds"), nb::arg("link"))
      .def(
          "__call__",
          [](const BoundScorer& self, const Array<double>& row) {
            if (row.size() != self.scorer.n_features()) {
              throw common::InputError("row: expected " + std::to_string(self.scorer.n_features()) +
                                       " values, got " + std::to_string(row.size()));
            }
            std::vector<double> out(self.scorer.n_out());
            self.scorer.score(row.data(), out.data());
            return to_numpy(std::move(out));
          },
          nb::arg("row"));
}

}  // namespace spinney::bindings
