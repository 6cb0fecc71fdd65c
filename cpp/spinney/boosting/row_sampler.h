// Draws the training rows of a round. A row's draw depends on its number in the whole table, so it
// does not depend on the worker that has it.
#pragma once

#include <vector>

#include "spinney/boosting/boost_options.h"
#include "spinney/common/random.h"

namespace spinney::boosting {

// The training rows of this worker.
struct TrainingRows {
  const std::vector<common::Row>* rows = nullptr;  // ascending; null: 0 … n-1
  std::size_t n = 0;
  const double* weights = nullptr;  // [row of the table]; null: all are 1
  std::size_t n_table_rows = 0;
  std::uint64_t n_all = 0;  // training rows of all workers

  common::Row operator[](std::size_t i) const {
    return rows == nullptr ? static_cast<common::Row>(i) : (*rows)[i];
  }
  double weight(common::Row row) const { return weights == nullptr ? 1.0 : weights[row]; }
};

class RowSampler {
 public:
  RowSampler(const BoostOptions& options, const TrainingRows& rows)
      : options_(options), rows_(rows) {}

  bool draws() const { return options_.subsample < 1; }
  bool draws_by_gradient() const { return draws() && options_.sampling == Sampling::gradient; }

  // derivatives: [score][row of the table].
  void draw(std::size_t round, const loss::Derivatives& derivatives);

  const std::vector<common::Row>& drawn() const { return drawn_; }
  const std::vector<common::Row>& left_out() const { return left_out_; }
  // Weights of rows drawn by gradient, [row of the table].
  const double* weights() const { return weights_.data(); }
  // Largest weight of a drawn row, over all workers.
  double largest_weight() const;

 private:
  void draw_uniformly(const common::Stream& stream);
  void draw_by_gradient(const common::Stream& stream, const loss::Derivatives& derivatives);
  std::vector<std::int64_t> gradient_sizes(const loss::Derivatives& derivatives) const;

  const BoostOptions& options_;
  TrainingRows rows_;
  std::vector<common::Row> drawn_;
  std::vector<common::Row> left_out_;
  std::vector<double> weights_;
};

}  // namespace spinney::boosting
