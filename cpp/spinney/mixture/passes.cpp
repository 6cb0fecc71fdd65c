#include "spinney/mixture/passes.h"

#include <algorithm>
#include <limits>

#include "spinney/common/large_array.h"
#include "spinney/common/parallel.h"
#include "spinney/mixture/block_kernels.h"
#include "spinney/mixture/lane_layout.h"

namespace spinney::mixture {

using common::parallel_for;
using common::Watch;
using common::worthwhile_threads;

namespace {

constexpr std::size_t rows_per_chunk = 8 * block_rows;
// Smaller responsibilities count as zero. They would not change a sum, except for the variance of a
// component that has collapsed to a point.
constexpr double min_responsibility = 1e-20;

// The model in the layout of the kernels, shared by all threads.
struct PreparedModel {
  CovarianceType covariance_type;
  std::size_t n_components;
  std::size_t n_features;
  const double* offsets;
  const double* means;
  const double* scales;                // diag
  common::LargeArray<double> packed;   // full and tied
  std::vector<double> whitened_means;  // tied

  PreparedModel(const Model& model, std::size_t n_features_, bool has_densities)
      : covariance_type(model.covariance_type),
        n_components(model.n_components),
        n_features(n_features_),
        offsets(model.offsets),
        means(model.means),
        scales(model.factors) {
    if (!has_densities || covariance_type == CovarianceType::diag) return;
    const std::size_t d = n_features;
    const std::size_t size = packed_size(d);
    const std::size_t n_factors = covariance_type == CovarianceType::full ? n_components : 1;
    packed.resize(n_factors * size);
    for (std::size_t k = 0; k < n_factors; ++k) {
      pack_factor(model.factors + k * d * d, d, packed.data() + k * size);
    }
    if (covariance_type != CovarianceType::tied) return;
    whitened_means.assign(n_components * d, 0.0);
    for (std::size_t k = 0; k < n_components; ++k) {
      for (std::size_t i = 0; i < d; ++i) {
        for (std::size_t j = i; j < d; ++j) {
          whitened_means[k * d + j] += means[k * d + i] * model.factors[i * d + j];
        }
      }
    }
  }
};

// The block of rows of one thread.
template <class T>
class Block {
 public:
  Block(const Rows<T>& rows, const PreparedModel& model)
      : rows_(rows),
        model_(model),
        // The features and a column of ones, whose products with the features are sums.
        n_columns_(common::round_to_tiles(rows.n_features + 1)),
        columns_(n_columns_ * block_rows),
        differences_(n_columns_ * block_rows),
        weighted_(n_columns_ * block_rows),
        responsibilities_(model.n_components * block_rows),
        weights_(block_rows),
        log_densities_(block_rows) {
    std::fill(columns_.begin(), columns_.end(), 0.0);
    std::fill(differences_.begin(), differences_.end(), 0.0);
    std::fill(weighted_.begin(), weighted_.end(), 0.0);
  }

  std::size_t n_rows() const { return n_rows_; }
  std::size_t n_columns() const { return n_columns_; }
  const double* log_densities() const { return log_densities_.data(); }
  const double* responsibilities(std::size_t k) const {
    return responsibilities_.data() + k * block_rows;
  }

  void read(std::size_t first) {
    first_ = first;
    n_rows_ = std::min(block_rows, rows_.n_rows - first);
    const T* from = rows_.x + static_cast<std::ptrdiff_t>(first) * rows_.row_stride;
    const std::size_t d = rows_.n_features;
    if (rows_.column_stride == 1) {
      for (std::size_t row = 0; row < n_rows_; ++row) {
        for (std::size_t f = 0; f < d; ++f) {
          columns_[f * block_rows + row] = static_cast<double>(from[f]) - rows_.shift[f];
        }
        from += rows_.row_stride;
      }
    } else {
      for (std::size_t f = 0; f < d; ++f) {
        const T* x = from + static_cast<std::ptrdiff_t>(f) * rows_.column_stride;
        for (std::size_t row = 0; row < n_rows_; ++row) {
          columns_[f * block_rows + row] = static_cast<double>(*x) - rows_.shift[f];
          x += rows_.row_stride;
        }
      }
    }
    for (std::size_t row = 0; row < n_rows_; ++row) {
      weights_[row] = rows_.weights != nullptr ? rows_.weights[first + row] : 1.0;
    }
    // Padding rows have weight zero.
    for (std::size_t row = n_rows_; row < block_rows; ++row) {
      weights_[row] = 0;
      for (std::size_t f = 0; f < d; ++f) columns_[f * block_rows + row] = 0;
    }
  }

  // Computes the densities of all components and the responsibilities.
  void compute_responsibilities() {
    const std::size_t d = model_.n_features;
    if (model_.covariance_type == CovarianceType::tied) {
      whiten(columns_.data(), model_.packed.data(), d, differences_.data());
    }
    for (std::size_t k = 0; k < model_.n_components; ++k) {
      double* const norms = responsibilities_.data() + k * block_rows;
      const double* const mean = model_.means + k * d;
      if (model_.covariance_type == CovarianceType::full) {
        subtract_mean(columns_.data(), mean, d, differences_.data());
        measure_full(differences_.data(), model_.packed.data() + k * packed_size(d), d, norms);
      } else if (model_.covariance_type == CovarianceType::tied) {
        measure_diagonal(differences_.data(), model_.whitened_means.data() + k * d, nullptr, d,
                         norms);
      } else {
        measure_diagonal(columns_.data(), mean, model_.scales + k * d, d, norms);
      }
      norms_to_logs(model_.offsets[k], norms);
    }
    normalise_logs(responsibilities_.data(), model_.n_components, weights_.data(),
                   log_densities_.data());
  }

  void copy_responsibilities(const KnownResponsibilities& known) {
    std::fill(responsibilities_.begin(), responsibilities_.end(), 0.0);
    std::fill(log_densities_.begin(), log_densities_.end(), 0.0);
    for (std::size_t row = 0; row < n_rows_; ++row) {
      if (known.labels != nullptr) {
        const std::int32_t label = known.labels[first_ + row];
        if (label < 0) continue;
        responsibilities_[static_cast<std::size_t>(label) * block_rows + row] = weights_[row];
        continue;
      }
      const double* const given = known.responsibilities + (first_ + row) * model_.n_components;
      for (std::size_t k = 0; k < model_.n_components; ++k) {
        responsibilities_[k * block_rows + row] = given[k] * weights_[row];
      }
    }
  }

  // Adds the block to the moments, in the order of LaneLayout.
  void add_to(double* lanes) {
    add_weighted(weights_.data(), log_densities_.data(), lanes);
    lanes += n_lanes;
    drop_small(min_responsibility, model_.n_components * block_rows, responsibilities_.data());
    const std::size_t d = model_.n_features;
    if (model_.covariance_type == CovarianceType::full) {
      for (std::size_t k = 0; k < model_.n_components; ++k) {
        add_full(k, lanes);
        lanes += packed_size(d + 1) * n_lanes;
      }
      return;
    }
    const bool squares = model_.covariance_type == CovarianceType::diag;
    for (std::size_t k = 0; k < model_.n_components; ++k) {
      add_moments(columns_.data(), model_.means + k * d, responsibilities(k), d, squares, lanes);
      lanes += (1 + (squares ? 2 : 1) * d) * n_lanes;
    }
    if (model_.covariance_type == CovarianceType::tied) add_tied(lanes);
  }

 private:
  void add_full(std::size_t k, double* tiles) {
    const double* const responsibility = responsibilities(k);
    std::size_t n_active = 0;
    for (std::size_t row = 0; row < block_rows; ++row) {
      active_[n_active] = static_cast<std::uint16_t>(row);
      n_active += responsibility[row] > 0;
    }
    if (n_active == 0) return;
    // If components are well separated, most responsibilities are zero, and such rows are skipped.
    const bool packs = n_active <= block_rows / 8 * 7;
    const std::size_t n = packs ? (n_active + n_lanes - 1) / n_lanes * n_lanes : block_rows;
    for (std::size_t i = n_active; i < n; ++i) active_[i] = 0;
    double* const ones = differences_.data() + model_.n_features * block_rows;
    double* const weights = weighted_.data() + model_.n_features * block_rows;
    for (std::size_t i = 0; i < n; ++i) {
      ones[i] = 1.0;
      weights[i] = packs ? (i < n_active ? responsibility[active_[i]] : 0.0) : responsibility[i];
    }
    for (std::size_t f = 0; f < model_.n_features; ++f) {
      const double* const column = columns_.data() + f * block_rows;
      const double mean = model_.means[k * model_.n_features + f];
      double* const d = differences_.data() + f * block_rows;
      double* const w = weighted_.data() + f * block_rows;
      if (packs) {
        for (std::size_t i = 0; i < n; ++i) d[i] = column[active_[i]] - mean;
      } else {
        for (std::size_t i = 0; i < n; ++i) d[i] = column[i] - mean;
      }
      for (std::size_t i = 0; i < n; ++i) w[i] = d[i] * weights[i];
    }
    clear_padding();
    add_products(n, tiles);
  }

  void add_tied(double* lanes) {
    const std::size_t d = model_.n_features;
    double* const ones = differences_.data() + d * block_rows;
    double* const weights = weighted_.data() + d * block_rows;
    for (std::size_t row = 0; row < block_rows; ++row) {
      double total = 0;
      for (std::size_t k = 0; k < model_.n_components; ++k) total += responsibilities(k)[row];
      ones[row] = 1.0;
      weights[row] = total;
      // Overlaps need responsibilities that sum to one, so they are divided by the weight of the
      // row.
      inverse_[row] = total > 0 ? 1 / total : 0.0;
    }
    for (std::size_t f = 0; f < d; ++f) {
      double* const to = differences_.data() + f * block_rows;
      double* const w = weighted_.data() + f * block_rows;
      std::fill(w, w + block_rows, 0.0);
      for (std::size_t k = 0; k < model_.n_components; ++k) {
        const double mean = model_.means[k * d + f];
        const double* const responsibility = responsibilities(k);
        for (std::size_t row = 0; row < block_rows; ++row) w[row] += responsibility[row] * mean;
      }
      const double* const column = columns_.data() + f * block_rows;
      for (std::size_t row = 0; row < block_rows; ++row) {
        to[row] = column[row] - w[row] * inverse_[row];
        w[row] = to[row] * weights[row];
      }
    }
    clear_padding();
    add_products(block_rows, lanes);
    lanes += packed_size(d + 1) * n_lanes;
    for (std::size_t k = 0; k < model_.n_components; ++k) {
      double divided[block_rows];
      for (std::size_t row = 0; row < block_rows; ++row) {
        divided[row] = responsibilities(k)[row] * inverse_[row];
      }
      for (std::size_t other = 0; other < k; ++other) {
        add_weighted(divided, responsibilities(other), lanes);
        lanes += n_lanes;
      }
    }
  }

  // Adds the products of weighted and plain differences, including the column of ones.
  void add_products(std::size_t n_rows, double* tiles) {
    const std::size_t n_columns = model_.n_features + 1;
    common::add_tiled_products(
        {weighted_.data(), differences_.data(), n_columns, n_rows, block_rows}, 0,
        common::count_tile_rows(n_columns), tiles);
  }

  // Clears whitened columns beyond the last feature.
  void clear_padding() {
    const std::size_t used = (model_.n_features + 1) * block_rows;
    std::fill(differences_.begin() + used, differences_.end(), 0.0);
  }

  const Rows<T>& rows_;
  const PreparedModel& model_;
  std::size_t n_columns_;
  std::size_t first_ = 0;
  std::size_t n_rows_ = 0;
  common::LargeArray<double> columns_, differences_, weighted_, responsibilities_, weights_,
      log_densities_;
  double inverse_[block_rows];
  std::uint16_t active_[block_rows + n_lanes];
};

// Approximate cost of a row in nanoseconds.
double cost_of_row(const PreparedModel& model) {
  const auto d = static_cast<double>(model.n_features);
  const auto k = static_cast<double>(model.n_components);
  const double matrix = 0.05 * d * d;
  return model.covariance_type == CovarianceType::full ? k * (5 + d + matrix)
                                                       : k * (5 + d) + matrix;
}

// Calls body(first, last, index, worker) for chunks of rows, `round` chunks at a time in parallel.
// After each round it calls done(number of chunks).
template <class Body, class Done>
void for_chunks(std::size_t n_rows, std::size_t round, int n_threads, double row_cost, Watch& watch,
                const Body& body, const Done& done) {
  const std::size_t n_chunks = (n_rows + rows_per_chunk - 1) / rows_per_chunk;
  for (std::size_t start = 0; start < n_chunks; start += round) {
    const std::size_t n = std::min(round, n_chunks - start);
    parallel_for(n, n_threads, [&](std::size_t index, int worker) {
      const std::size_t first = (start + index) * rows_per_chunk;
      body(first, std::min(n_rows, first + rows_per_chunk), index, worker);
    });
    done(n);
    watch.poll(static_cast<std::uint64_t>(static_cast<double>(n * rows_per_chunk) * row_cost));
  }
}

}  // namespace

template <class T>
Moments sum_moments(const Rows<T>& rows, const Model& model, const KnownResponsibilities& known,
                    int n_threads, Watch& watch) {
  const bool has_densities = known.labels == nullptr && known.responsibilities == nullptr;
  const PreparedModel prepared(model, rows.n_features, has_densities);
  const LaneLayout layout{model.covariance_type, model.n_components, rows.n_features};
  const double row_cost = cost_of_row(prepared);
  n_threads = worthwhile_threads(row_cost * static_cast<double>(rows.n_rows), n_threads);
  const auto n_workers = static_cast<std::size_t>(n_threads);
  const std::size_t size = layout.size(), round = 4 * n_workers;
  std::vector<Block<T>> blocks;
  blocks.reserve(n_workers);
  for (std::size_t i = 0; i < n_workers; ++i) blocks.emplace_back(rows, prepared);
  common::LargeArray<double> lanes(n_workers * size * n_lanes);
  common::LargeArray<double> chunk_sums(round * size);
  std::vector<double> total(size, 0.0);
  for_chunks(
      rows.n_rows, round, n_threads, row_cost, watch,
      [&](std::size_t first, std::size_t last, std::size_t index, int worker) {
        Block<T>& block = blocks[static_cast<std::size_t>(worker)];
        double* const own = lanes.data() + static_cast<std::size_t>(worker) * size * n_lanes;
        std::fill(own, own + size * n_lanes, 0.0);
        for (std::size_t row = first; row < last; row += block_rows) {
          block.read(row);
          if (has_densities) {
            block.compute_responsibilities();
          } else {
            block.copy_responsibilities(known);
          }
          block.add_to(own);
        }
        add_lanes(own, size, chunk_sums.data() + index * size);
      },
      [&](std::size_t n) {
        for (std::size_t chunk = 0; chunk < n; ++chunk) {
          const double* const sums = chunk_sums.data() + chunk * size;
          for (std::size_t i = 0; i < size; ++i) total[i] += sums[i];
        }
      });
  return layout.unpack(total.data());
}

template <class T>
void score_rows(const Rows<T>& rows, const Model& model, const Scores& out, int n_threads,
                Watch& watch) {
  const PreparedModel prepared(model, rows.n_features, true);
  const double row_cost = cost_of_row(prepared);
  n_threads = worthwhile_threads(row_cost * static_cast<double>(rows.n_rows), n_threads);
  const auto n_workers = static_cast<std::size_t>(n_threads);
  std::vector<Block<T>> blocks;
  blocks.reserve(n_workers);
  for (std::size_t i = 0; i < n_workers; ++i) blocks.emplace_back(rows, prepared);
  const std::size_t k = model.n_components;
  for_chunks(
      rows.n_rows, 16 * n_workers, n_threads, row_cost, watch,
      [&](std::size_t first, std::size_t last, std::size_t, int worker) {
        Block<T>& block = blocks[static_cast<std::size_t>(worker)];
        for (std::size_t start = first; start < last; start += block_rows) {
          block.read(start);
          block.compute_responsibilities();
          for (std::size_t i = 0; i < block.n_rows(); ++i) {
            if (out.log_densities != nullptr)
              out.log_densities[start + i] = block.log_densities()[i];
            std::size_t best = 0;
            for (std::size_t c = 0; c < k; ++c) {
              const double responsibility = block.responsibilities(c)[i];
              if (out.responsibilities != nullptr)
                out.responsibilities[(start + i) * k + c] = responsibility;
              if (responsibility > block.responsibilities(best)[i]) best = c;
            }
            if (out.labels != nullptr) out.labels[start + i] = static_cast<std::int64_t>(best);
          }
        }
      },
      [](std::size_t) {});
}

template Moments sum_moments(const Rows<float>&, const Model&, const KnownResponsibilities&, int,
                             Watch&);
template Moments sum_moments(const Rows<double>&, const Model&, const KnownResponsibilities&, int,
                             Watch&);
template void score_rows(const Rows<float>&, const Model&, const Scores&, int, Watch&);
template void score_rows(const Rows<double>&, const Model&, const Scores&, int, Watch&);

}  // namespace spinney::mixture
