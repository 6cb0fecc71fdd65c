#include <memory>
#include <string>
#include <utility>

#include "bits.h"
#include "spinney/common/random.h"
#include "spinney/distance/closer.h"
#include "spinney/distance/gower.h"
#include "spinney/distance/string_distances.h"

namespace bits {

using namespace spinney;
using namespace spinney::distance;

namespace {

// Triplets of rows.
struct Drawn {
  std::vector<std::int64_t> x, a, b;

  explicit Drawn(std::size_t n_rows) {
    common::Stream stream(8, common::Purpose::rows, 0);
    for (int i = 0; i < 2000; ++i) {
      for (auto* of : {&x, &a, &b}) of->push_back(static_cast<std::int64_t>(stream.below(n_rows)));
    }
  }
};

void print_triplets() {
  const Data& data = train_complete();
  const Drawn drawn(data.n_rows);
  for (const auto& [name, metric] : {std::pair{"euclidean", VectorMetric::euclidean},
                                     std::pair{"manhattan", VectorMetric::manhattan},
                                     std::pair{"chebyshev", VectorMetric::chebyshev}}) {
    print(std::string("triplets ") + name, [&](Hash& hash) {
      const Vectors rows{data.x.data(), data.n_rows, data.n_numbers};
      const auto out = std::make_unique<bool[]>(drawn.x.size());
      find_closer(metric, rows, rows, {drawn.x, drawn.a, drawn.b}, n_threads, out.get());
      for (std::size_t i = 0; i < drawn.x.size(); ++i) hash.add(out[i]);
    });
  }
}

void print_strings() {
  common::Stream stream(9, common::Purpose::rows, 0);
  std::vector<std::uint32_t> characters;
  std::vector<std::int64_t> starts{0};
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t length = stream.below(i < 50 ? 12 : 90);
    for (std::uint64_t c = 0; c < length; ++c) {
      characters.push_back(static_cast<std::uint32_t>(stream.below(4) * 1000));
    }
    starts.push_back(static_cast<std::int64_t>(characters.size()));
  }
  const Strings strings{characters.data(), starts.data(), 60};
  for (const auto& [name, metric] :
       {std::pair{"edit", StringMetric::edit}, std::pair{"hamming", StringMetric::hamming}}) {
    print(std::string("strings ") + name, [&](Hash& hash) {
      std::vector<double> out(60 * 60);
      string_distances(metric, strings, strings, n_threads, out.data());
      hash.add(out);
    });
  }
}

void print_gower() {
  print("gower", [](Hash& hash) {
    const auto by_column = [](const Data& data) {
      std::vector<double> out;
      for (std::size_t f = 0; f < data.n_numbers; ++f) {
        for (std::size_t i = 0; i < data.n_rows; ++i) {
          out.push_back(data.x[i * data.n_numbers + f]);
        }
      }
      return out;
    };
    const std::vector<double> rows = by_column(train());
    const std::vector<double> queries = by_column(test());
    const std::size_t d = train().n_numbers;
    const std::vector<double> scales(d, 0.3), weights(d, 1.0), code_weights{1.5};
    const auto misses = std::make_unique<bool[]>(d);
    for (std::size_t f = 0; f < d; ++f) misses[f] = true;
    const MixedColumns columns{
        d, 1, scales.data(), weights.data(), code_weights.data(), misses.get(), misses.get()};
    const MixedRows from{queries.data(), test().category.data(), test().n_rows};
    const MixedRows to{rows.data(), train().category.data(), train().n_rows};
    std::vector<double> all(test().n_rows * train().n_rows);
    gower_distances(columns, from, to, n_threads, all.data());
    hash.add(all);
    std::vector<double> distances(test().n_rows * 9);
    std::vector<std::int64_t> indices(test().n_rows * 9);
    find_nearest_gower(columns, from, to, 9, n_threads, distances.data(), indices.data());
    hash.add(distances);
    hash.add(indices);
  });
}

}  // namespace

void print_distances() {
  print_triplets();
  print_strings();
  print_gower();
}

}  // namespace bits
