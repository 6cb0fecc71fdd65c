#include <limits>
#include <string>
#include <utility>

#include "bits.h"
#include "spinney/neighbors/ball_tree.h"
#include "spinney/neighbors/brute_force.h"
#include "spinney/neighbors/hnsw.h"
#include "spinney/neighbors/kd_tree.h"
#include "spinney/neighbors/local_fit.h"

namespace bits {

using namespace spinney;
using namespace spinney::neighbors;

namespace {

constexpr std::size_t k = 7;

struct Result {
  std::vector<double> distances = std::vector<double>(test().n_rows * k);
  std::vector<distance::RowIndex> indices = std::vector<distance::RowIndex>(test().n_rows * k);

  void add_to(Hash& hash) const {
    hash.add(distances);
    hash.add(indices);
  }
};

void add_found(Hash& hash, const Found& found) {
  hash.add(found.counts);
  hash.add(found.indices);
  hash.add(found.distances);
}

void print_trees_of(double p) {
  const Data& data = train_complete();
  const Data& queries = test_complete();
  const std::size_t d = data.n_numbers;
  const std::vector<double> radii(queries.n_rows, 1.1);
  const std::string suffix = " p " + std::to_string(p);
  print("k-d tree" + suffix, [&](Hash& hash) {
    const KdTree tree(data.x.data(), data.n_rows, d, p, 20, n_threads);
    Result result;
    KdQuery options;
    options.k = k;
    options.n_threads = n_threads;
    tree.query(queries.x.data(), queries.n_rows, options, result.distances.data(),
               result.indices.data());
    result.add_to(hash);
    options.eps = 0.5;
    tree.query(queries.x.data(), queries.n_rows, options, result.distances.data(),
               result.indices.data());
    result.add_to(hash);
    add_found(hash, tree.within(queries.x.data(), queries.n_rows, radii.data(), true, n_threads));
  });
  print("ball tree" + suffix, [&](Hash& hash) {
    BallDistance distance;
    distance.p = p;
    if (p == 3) distance.weights.assign(d, 0.3);
    const BallTree tree(data.x.data(), data.n_rows, d, distance, 20);
    Result result;
    tree.query(queries.x.data(), queries.n_rows, k, n_threads, result.distances.data(),
               result.indices.data());
    result.add_to(hash);
    add_found(hash, tree.within(queries.x.data(), queries.n_rows, radii.data(), false, n_threads));
  });
}

void print_ball_tree(const char* name, BallMetric metric) {
  print(std::string("ball tree ") + name, [&](Hash& hash) {
    const std::size_t d = metric == BallMetric::haversine ? 2 : train_complete().n_numbers;
    const auto first_columns = [d](const Data& data) {
      std::vector<double> out;
      for (std::size_t i = 0; i < data.n_rows; ++i) {
        for (std::size_t f = 0; f < d; ++f) out.push_back(data.x[i * data.n_numbers + f]);
      }
      return out;
    };
    std::vector<double> points = first_columns(train_complete());
    std::vector<double> queries = first_columns(test_complete());
    if (metric != BallMetric::haversine && metric != BallMetric::canberra) {
      for (double& value : points) value = value > 0.5 ? 1.0 : 0.0;
      for (double& value : queries) value = value > 0.5 ? 1.0 : 0.0;
    }
    BallDistance distance;
    distance.kind = metric;
    const BallTree tree(points.data(), train_complete().n_rows, d, distance, 15);
    Result result;
    tree.query(queries.data(), test_complete().n_rows, k, n_threads, result.distances.data(),
               result.indices.data());
    result.add_to(hash);
  });
}

// Products in a simple loop stand for those of BLAS.
void print_brute_force() {
  print("brute force", [](Hash& hash) {
    const Data& data = train_complete();
    const Data& queries = test_complete();
    const std::size_t d = data.n_numbers;
    const std::vector<double> centre(d, 0.1);
    std::vector<float> rows(data.n_rows * d), half_norms(data.n_rows);
    hash.add(centre_rows(data.x.data(), data.n_rows, d, centre.data(), n_threads, rows.data(),
                         half_norms.data()));
    hash.add(rows);
    hash.add(half_norms);
    std::vector<float> products;
    for (std::size_t i = 0; i < queries.n_rows; ++i) {
      for (std::size_t j = 0; j < data.n_rows; ++j) {
        float sum = 0;
        for (std::size_t f = 0; f < d; ++f) {
          sum += static_cast<float>(queries.x[i * d + f] - centre[f]) * rows[j * d + f];
        }
        products.push_back(sum);
      }
    }
    BruteSelection selection(queries.n_rows, k, std::vector<float>(queries.n_rows, 1e-4F));
    selection.add_block(products.data(), half_norms.data(), data.n_rows, 0, n_threads);
    Result result;
    selection.finish(data.x.data(), data.n_rows, d, queries.x.data(), n_threads,
                     result.distances.data(), result.indices.data());
    result.add_to(hash);
  });
}

void print_hnsw(const char* name, SearchMetric metric, bool has_codes) {
  print(std::string("hnsw ") + name + (has_codes ? " codes" : ""), [&](Hash& hash) {
    HnswOptions options;
    options.metric = metric;
    options.has_codes = has_codes;
    options.M = 8;
    options.ef_construction = 40;
    options.seed = 2;
    Hnsw index(options, train_complete().n_numbers);
    common::Watch watch;
    index.add(train_complete().narrow.data(), train_complete().n_rows, n_threads, watch);
    const std::size_t n = test_complete().n_rows;
    std::vector<float> distances(n * k);
    std::vector<Slot> slots(n * k);
    const auto search = [&] {
      index.search(test_complete().narrow.data(), n, k, 30, nullptr, n_threads, watch,
                   {distances.data(), slots.data()});
      hash.add(distances);
      hash.add(slots);
    };
    search();
    hash.add(index.reorder());
    search();
    index.search_exactly(test_complete().narrow.data(), n, k, nullptr, n_threads, watch,
                         {distances.data(), slots.data()});
    hash.add(distances);
    hash.add(slots);
  });
}

void print_local(const char* name, SmoothingKernel kernel, int degree, bool logit) {
  print(
      std::string("local ") + name + " degree " + std::to_string(degree) + (logit ? " logit" : ""),
      [&](Hash& hash) {
        const Data& data = train_complete();
        const Data& queries = test_complete();
        const std::size_t d = data.n_numbers;
        const std::size_t n_near = 60;
        const KdTree tree(data.x.data(), data.n_rows, d, 2, 20, n_threads);
        std::vector<double> distances(queries.n_rows * n_near);
        std::vector<std::int64_t> rows(queries.n_rows * n_near);
        KdQuery options;
        options.k = n_near;
        options.n_threads = n_threads;
        tree.query(queries.x.data(), queries.n_rows, options, distances.data(), rows.data());
        std::vector<std::int64_t> starts(queries.n_rows + 1);
        std::vector<double> bandwidths(queries.n_rows);
        for (std::size_t q = 0; q < queries.n_rows; ++q) {
          starts[q + 1] = static_cast<std::int64_t>((q + 1) * n_near);
          bandwidths[q] = 1.01 * distances[(q + 1) * n_near - 1];
        }
        LocalModel model;
        model.x = data.x.data();
        model.y = logit ? data.sides.data() : data.y.data();
        model.weights = data.fractions.data();
        model.n_rows = data.n_rows;
        model.n_features = d;
        model.n_outputs = 1;
        model.kernel = kernel;
        model.degree = degree;
        model.alpha = degree == 2 ? 0.01 : 0.0;
        model.logit = logit;
        Neighborhoods near;
        near.queries = queries.x.data();
        near.n_queries = queries.n_rows;
        near.starts = starts.data();
        near.rows = rows.data();
        near.n_entries = rows.size();
        near.distances = distances.data();
        near.bandwidths = bandwidths.data();
        const LocalFits result = fit_local(model, near, degree > 0 && !logit, n_threads);
        hash.add(result.values);
        hash.add(result.noise);
        hash.add(result.gradients);
      });
}

}  // namespace

void print_neighbors() {
  for (const double p : {1.0, 1.5, 2.0, 3.0, std::numeric_limits<double>::infinity()}) {
    print_trees_of(p);
  }
  for (const auto& [name, metric] :
       {std::pair{"haversine", BallMetric::haversine}, std::pair{"hamming", BallMetric::hamming},
        std::pair{"canberra", BallMetric::canberra}, std::pair{"jaccard", BallMetric::jaccard},
        std::pair{"rogerstanimoto", BallMetric::rogers_tanimoto},
        std::pair{"sokalsneath", BallMetric::sokal_sneath}}) {
    print_ball_tree(name, metric);
  }
  print_brute_force();
  for (const auto& [name, metric] :
       {std::pair{"euclidean", SearchMetric::euclidean}, std::pair{"cosine", SearchMetric::cosine},
        std::pair{"inner_product", SearchMetric::inner_product}}) {
    print_hnsw(name, metric, false);
    if (metric != SearchMetric::inner_product) print_hnsw(name, metric, true);
  }
  for (const auto& [name, kernel] : {std::pair{"uniform", SmoothingKernel::uniform},
                                     std::pair{"triangular", SmoothingKernel::triangular},
                                     std::pair{"epanechnikov", SmoothingKernel::epanechnikov},
                                     std::pair{"biweight", SmoothingKernel::biweight},
                                     std::pair{"triweight", SmoothingKernel::triweight},
                                     std::pair{"tricube", SmoothingKernel::tricube},
                                     std::pair{"gaussian", SmoothingKernel::gaussian},
                                     std::pair{"cosine", SmoothingKernel::cosine},
                                     std::pair{"logistic", SmoothingKernel::logistic}}) {
    for (const int degree : {0, 1, 2}) print_local(name, kernel, degree, false);
    print_local(name, kernel, 1, true);
  }
}

}  // namespace bits
