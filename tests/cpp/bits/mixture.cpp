#include "spinney/mixture/passes.h"

#include <string>
#include <utility>

#include "bits.h"

namespace bits {

using namespace spinney;
using namespace spinney::mixture;

void print_mixture() {
  for (const auto& [name, kind] :
       {std::pair{"full", CovarianceType::full}, std::pair{"tied", CovarianceType::tied},
        std::pair{"diag", CovarianceType::diag}}) {
    print(std::string("mixture ") + name, [&](Hash& hash) {
      const Data& data = train_complete();
      const std::size_t d = data.n_numbers, n_components = 3;
      std::vector<double> shift(d, 0.1), means, factors, offsets;
      for (std::size_t c = 0; c < n_components; ++c) {
        offsets.push_back(-2.0 - 0.5 * static_cast<double>(c));
        for (std::size_t f = 0; f < d; ++f) {
          means.push_back(static_cast<double>(c) - 1 + 0.1 * static_cast<double>(f));
        }
        for (std::size_t f = 0; kind == CovarianceType::diag && f < d; ++f) factors.push_back(0.8);
      }
      const std::size_t n_matrices = kind == CovarianceType::full   ? n_components
                                     : kind == CovarianceType::tied ? 1
                                                                    : 0;
      for (std::size_t m = 0; m < n_matrices; ++m) {
        for (std::size_t a = 0; a < d; ++a) {
          for (std::size_t b = 0; b < d; ++b) {
            factors.push_back(a == b ? 0.9 : a < b ? 0.05 * static_cast<double>(m + 1) : 0.0);
          }
        }
      }
      const Model model{kind, n_components, offsets.data(), means.data(), factors.data()};
      common::Watch watch;
      const Rows<double> rows{
          data.x.data(), data.n_rows,          d, static_cast<std::ptrdiff_t>(d), 1,
          shift.data(),  data.fractions.data()};
      const Moments moments = sum_moments(rows, model, {}, n_threads, watch);
      hash.add(moments.log_likelihood);
      hash.add(moments.counts);
      hash.add(moments.sums);
      hash.add(moments.products);
      hash.add(moments.overlaps);
      const Data& queries = test_complete();
      const Rows<float> narrow{
          queries.narrow.data(), queries.n_rows, d, static_cast<std::ptrdiff_t>(d), 1,
          shift.data(),          nullptr};
      std::vector<double> densities(queries.n_rows), shares(queries.n_rows * n_components);
      std::vector<std::int64_t> labels(queries.n_rows);
      score_rows(narrow, model, {densities.data(), shares.data(), labels.data()}, n_threads, watch);
      hash.add(densities);
      hash.add(shares);
      hash.add(labels);
    });
  }
}

}  // namespace bits
