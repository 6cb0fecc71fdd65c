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
#include "spinney/boosting/scorers.h"
#include "spinney/common/check.h"
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

loss::Loss make_loss(const std::string& name, double parameter, std::size_t n_scores) {
  return {.kind = loss_named(name), .parameter = parameter, .n_scores = n_scores};
}

boosting::Growth growth_named(const std::string& name) {
  if (name == "level_wise") return boosting::Growth::level_wise;
  if (name == "oblivious") return boosting::Growth::oblivious;
  if (name == "best_first") return boosting::Growth::best_first;
  throw unknown_name("growth", name, {"best_first", "level_wise", "oblivious"});
}

boosting::Link link_named(const std::string& name) {
  if (name == "exponential") return boosting::Link::exponential;
  if (name == "probability") return boosting::Link::probability;
  if (name == "logistic") return boosting::Link::logistic;
  if (name == "twice_logistic") return boosting::Link::twice_logistic;
  if (name == "softmax") return boosting::Link::softmax;
  if (name == "identity") return boosting::Link::identity;
  throw unknown_name(
      "link", name,
      {"identity", "exponential", "probability", "logistic", "twice_logistic", "softmax"});
}

// A round has n_scores trees; leaves that hold labels have no scores.
void check_rounds(const ensemble::Forest& forest, std::size_t n_rounds, std::size_t n_scores) {
  if (criterion::is_classification(forest.shape.criterion)) {
    throw common::InputError("rounds: a forest of classes has no scores");
  }
  if (n_scores == 0 || n_rounds > forest.trees.size() / n_scores) {
    throw common::InputError("rounds: beyond the last");
  }
}

struct BoundScorer {
  nb::object forest;  // kept alive
  boosting::RowScorer scorer;
};

// Targets as Python gives them, in as few bytes as hold them.
using TargetArray = std::variant<Array<double>, Array<float>, Array<std::uint8_t>>;

loss::LossTargets view_targets(const TargetArray& given) {
  return std::visit([](const auto& values) { return loss::LossTargets(values.data()); }, given);
}

// Rows that are watched but not learned from, as Python gives them.
struct BoundValidation {
  std::shared_ptr<table::RowMatrix> matrix;
  nb::object targets, weights, scores;  // kept alive
  boosting::Validation validation;
};

// Other workers, as Python reaches them: an object with add(array of int64) and max(array of
// float64), which change the array in place.
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

nb::tuple run_boost(const std::shared_ptr<table::RowMatrix>& matrix,
                    const std::optional<Array<std::uint32_t>>& rows, const TargetArray& targets,
                    const std::optional<Array<double>>& weights, const OutArray<double>& scores,
                    BoundValidation* watched, boosting::BoostOptions options,
                    ensemble::Forest& forest, nb::object own_gradients, nb::handle progress,
                    nb::object exchange, nb::object after_round) {
  std::vector<common::Row> learned;
  if (rows) learned.assign(rows->data(), rows->data() + rows->size());
  for (const common::Row row : learned) {
    if (row >= matrix->n_rows()) throw common::InputError("rows: no such row");
  }
  std::optional<PythonExchange> others;
  if (!exchange.is_none()) options.exchange = &others.emplace(exchange);
  if (!after_round.is_none()) {
    options.after_round = [&](std::size_t round) {
      const nb::gil_scoped_acquire acquire;
      after_round(round);
    };
  }
  boosting::BoostHistory history;
  const std::size_t n = matrix->n_rows() * options.loss.n_scores;
  if (!own_gradients.is_none()) {
    options.own_gradients = [&](const double*, const loss::Derivatives& out) {
      const nb::gil_scoped_acquire acquire;
      const auto told = nb::cast<nb::tuple>(own_gradients());
      const auto gradient = nb::cast<Array<double>>(told[0]);
      const auto hessian = nb::cast<Array<double>>(told[1]);
      if (gradient.size() != n || hessian.size() != n) {
        throw common::InputError("loss: expected a gradient and a hessian for every row");
      }
      for (std::size_t i = 0; i < n; ++i) {
        out.gradient[i] = static_cast<float>(gradient.data()[i]);
        out.hessian[i] = static_cast<float>(hessian.data()[i]);
      }
    };
  }
  common::Watch watch(make_hook(progress), options.n_rounds);
  {
    const nb::gil_scoped_release release;
    boosting::Validation none;
    boosting::boost(*matrix, rows ? &learned : nullptr, view_targets(targets),
                    weights ? weights->data() : nullptr, scores.data(),
                    watched == nullptr ? none : watched->validation, options, forest, history,
                    watch);
  }
  return nb::make_tuple(to_numpy(std::move(history.train)),
                        to_numpy(std::move(history.validation)));
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
      // Of a part of a table: takes rows, a piece at a time, …
      .def(
          "write",
          [](table::BinnedMatrix& self, const BoundTable& bound, std::size_t first, int n_threads) {
            const nb::gil_scoped_release release;
            self.write(bound.table, first, n_threads);
          },
          nb::arg("piece"), nb::arg("first"), nb::arg("n_threads"))
      // … tells of each column whether values are missing, …
      .def("missing",
           [](const table::BinnedMatrix& self) {
             std::vector<std::int64_t> missing;
             for (std::size_t f = 0; f < self.n_features(); ++f) {
               missing.push_back(self.column(f).has_missing ? 1 : 0);
             }
             return to_numpy(std::move(missing));
           })
      // … and is told in how many parts of the table.
      .def(
          "complete",
          [](table::BinnedMatrix& self, const Array<std::int64_t>& missing) {
            self.complete(view(missing));
          },
          nb::arg("missing"))
      // Numbers of rows of each code, one column after another: of this part of a table, …
      .def("count_codes",
           [](const table::BinnedMatrix& self) { return to_numpy(self.code_counts()); })
      // … and of all of it.
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
          throw common::InputError("weights: expected one for each row");
        }
        std::span<const common::Row> rows;
        if (among) rows = {among->data(), among->size()};
        for (const common::Row row : rows) {
          if (row >= bound.table.n_rows) throw common::InputError("among: no such row");
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
          const auto one = nb::cast<nb::tuple>(item);  // cuts or bins of categories
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
              throw common::InputError("bins: expected cuts that ascend");
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
      throw common::InputError("units: expected one for each value");
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
      .def(nb::init<>())
      .def(
          "set_loss",
          [](boosting::BoostOptions& self, const std::string& name, double parameter,
             std::size_t n_scores) {
            self.loss = make_loss(name, parameter, n_scores);
            self.ranking.by_gain = name == "ndcg";
            if (self.ranking.by_gain) self.ranking.ndcg_at = static_cast<std::size_t>(parameter);
          },
          nb::arg("name"), nb::arg("parameter"), nb::arg("n_scores"))
      .def(
          "set_growth",
          [](boosting::BoostOptions& self, const std::string& name) {
            self.tree.growth = growth_named(name);
          },
          nb::arg("name"))
#define SPINNEY_RW(NAME, PATH)                                                             \
  .def_prop_rw(                                                                            \
      NAME, [](const boosting::BoostOptions& self) { return self.PATH; },                  \
      [](boosting::BoostOptions& self, const decltype(boosting::BoostOptions{}.PATH)& v) { \
        self.PATH = v;                                                                     \
      })
      // clang-format off
      SPINNEY_RW("learning_rate", learning_rate)
      SPINNEY_RW("groups", groups)
      SPINNEY_RW("n_rounds", n_rounds)
      SPINNEY_RW("first_round", first_round)
      SPINNEY_RW("subsample", subsample)
      SPINNEY_RW("by_gradient", by_gradient)
      SPINNEY_RW("levels", loss.levels)
      SPINNEY_RW("n_targets", loss.n_targets)
      SPINNEY_RW("n_threads", n_threads)
      SPINNEY_RW("max_leaves", tree.max_leaves)
      SPINNEY_RW("max_depth", tree.max_depth)
      SPINNEY_RW("tree_columns", tree.tree_columns)
      SPINNEY_RW("level_columns", tree.level_columns)
      SPINNEY_RW("node_columns", tree.node_columns)
      SPINNEY_RW("interactions", tree.interactions)
      SPINNEY_RW("seed", tree.seed)
      SPINNEY_RW("l2", tree.split.l2)
      SPINNEY_RW("l1", tree.split.l1)
      SPINNEY_RW("min_gain", tree.split.min_gain)
      SPINNEY_RW("min_hessian", tree.split.min_hessian)
      SPINNEY_RW("min_rows", tree.split.min_rows)
      SPINNEY_RW("monotonic", tree.split.monotonic)
      .def_prop_rw(
          "stretches",
          [](const boosting::BoostOptions& self) {
            std::vector<std::pair<std::size_t, std::uint64_t>> out;
            for (const boosting::RowStretch& of : self.stretches) out.push_back({of.begin, of.number});
            return out;
          },
          [](boosting::BoostOptions& self,
             const std::vector<std::pair<std::size_t, std::uint64_t>>& stretches) {
            self.stretches.clear();
            for (const auto& [begin, number] : stretches) self.stretches.push_back({begin, number});
          });
  // clang-format on
#undef SPINNEY_RW

  nb::class_<BoundValidation>(m, "BoostValidation")
      .def(
          "__init__",
          [](BoundValidation* self, const std::shared_ptr<table::RowMatrix>& matrix,
             const Array<std::uint32_t>& rows, const TargetArray& targets,
             const std::optional<Array<double>>& weights, const OutArray<double>& scores,
             std::vector<std::uint32_t> groups) {
            auto* made = new (self)
                BoundValidation{matrix,
                                std::visit([](const auto& of) { return nb::cast(of); }, targets),
                                weights ? nb::cast(*weights) : nb::none(),
                                nb::cast(scores),
                                {}};
            made->validation = {matrix.get(),          {rows.data(), rows.data() + rows.size()},
                                view_targets(targets), weights ? weights->data() : nullptr,
                                scores.data(),         std::move(groups)};
          },
          nb::arg("matrix"), nb::arg("rows"), nb::arg("targets").noconvert(),
          nb::arg("weights").none(), nb::arg("scores"),
          nb::arg("groups") = std::vector<std::uint32_t>());

  m.def("boost", &run_boost, nb::arg("matrix"), nb::arg("rows").none(),
        nb::arg("targets").noconvert(), nb::arg("weights").none(), nb::arg("scores"),
        nb::arg("validation").none(), nb::arg("options"), nb::arg("forest"),
        nb::arg("own_gradients").none(), nb::arg("progress").none(),
        nb::arg("exchange").none() = nb::none(), nb::arg("after_round").none() = nb::none());

  m.def(
      "add_rounds",
      [](const ensemble::Forest& forest, const BoundTable& bound, std::size_t n_scores,
         std::size_t first, std::size_t last, int n_threads, const OutArray<double>& out) {
        check_rounds(forest, last, n_scores);
        const std::size_t width = forest.shape.width();
        if (first > last || (width > 1 && n_scores > 1) ||
            out.size() != bound.table.n_rows * n_scores * width) {
          throw common::InputError(
              "add_rounds: out needs a row for each row, a column for each score");
        }
        const nb::gil_scoped_release release;
        boosting::add_rounds(forest, bound.table, n_scores, first, last, n_threads, out.data());
      },
      nb::arg("forest"), nb::arg("table"), nb::arg("n_scores"), nb::arg("first"), nb::arg("last"),
      nb::arg("n_threads"), nb::arg("out"));

  m.def(
      "append_mean",
      [](const std::vector<const ensemble::Forest*>& forests, std::size_t n_rounds,
         std::size_t n_scores, ensemble::Forest& out) {
        for (const ensemble::Forest* const forest : forests) {
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
            const ensemble::Forest& trees = nb::cast<const ensemble::Forest&>(forest);
            const std::size_t width = trees.shape.width();
            check_rounds(trees, n_rounds, width > 1 ? 1 : baseline.size());
            if (width > 1 && baseline.size() != width) {
              throw common::InputError("RowScorer: expected a baseline for each score");
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
