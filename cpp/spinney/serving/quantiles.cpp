#include "spinney/serving/quantiles.h"

#include <algorithm>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/serving/forest_reader.h"

namespace spinney::serving {

namespace {

struct Mass {
  double value;
  double weight;
};

// Quantiles of a weighted sample: each point is at the middle of its mass, and the distribution is
// linear between two points.
void quantiles_of(std::vector<Mass>& sample, std::span<const double> q, double* out) {
  std::sort(sample.begin(), sample.end(), [](const Mass& a, const Mass& b) {
    return a.value < b.value || (a.value == b.value && a.weight < b.weight);
  });
  double total = 0;
  for (const Mass& mass : sample) total += mass.weight;
  for (std::size_t k = 0; k < q.size(); ++k) {
    const double wanted = q[k] * total;
    double before = 0;  // mass of the points passed
    double middle = 0;  // of the last point passed
    double& quantile = out[k];
    quantile = sample.back().value;
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const double here = before + sample[i].weight / 2;
      if (wanted <= here) {
        quantile = sample[i].value;
        if (i > 0 && sample[i].value > sample[i - 1].value) {
          const double share = (wanted - middle) / (here - middle);
          quantile = sample[i - 1].value * (1 - share) + sample[i].value * share;
        }
        break;
      }
      before += sample[i].weight;
      middle = here;
    }
  }
}

}  // namespace

void predict_quantiles(const forest::Forest& forest, const table::Table& table,
                       const double* targets, std::size_t n_targets, const double* weights,
                       std::span<const double> q, int n_threads, double* out) {
  const std::size_t n_outputs = forest.shape.n_outputs;
  for (const forest::CompactTree& tree : forest.trees) {
    for (const std::uint32_t row : tree.members) {
      if (row >= n_targets) {
        throw common::InputError(
            "the leaves of a forest refer to rows that the targets do not have");
      }
    }
  }
  const auto quantiles_of_row = [&](const std::uint32_t* leaves, std::size_t stride,
                                    std::size_t row, std::vector<Mass>& sample) {
    for (std::size_t o = 0; o < n_outputs; ++o) {
      sample.clear();
      for (std::size_t t = 0; t < forest.trees.size(); ++t) {
        const forest::CompactTree& tree = forest.trees[t];
        const std::size_t leaf = leaves[t * stride];
        const std::size_t begin = tree.members.empty() ? 0 : tree.member_start[leaf];
        const std::size_t end = tree.members.empty() ? 0 : tree.member_start[leaf + 1];
        if (begin == end) {  // pure: all its targets are the same
          sample.push_back({tree.values[leaf * n_outputs + o], 1.0});
          continue;
        }
        double total = 0;
        for (std::size_t i = begin; i < end; ++i) {
          total += weights == nullptr ? 1.0 : weights[tree.members[i]];
        }
        for (std::size_t i = begin; i < end; ++i) {
          const std::uint32_t member = tree.members[i];
          const double weight = weights == nullptr ? 1.0 : weights[member];
          if (weight > 0) sample.push_back({targets[o * n_targets + member], weight / total});
        }
      }
      quantiles_of(sample, q, out + (row * n_outputs + o) * q.size());
    }
  };
  visit_blocks(forest, table, n_threads,
               [&](std::size_t first, std::size_t n, const std::uint32_t* leaves) {
                 std::vector<Mass> sample;
                 for (std::size_t i = 0; i < n; ++i) {
                   quantiles_of_row(leaves + i, n, first + i, sample);
                 }
               });
}

}  // namespace spinney::serving
