#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/neighbors/hnsw.h"
#include "tree.h"

namespace nb = nanobind;
using namespace spinney;

namespace {

SearchMetric metric_named(const std::string& name) {
  if (name == "euclidean") return SearchMetric::euclidean;
  if (name == "cosine") return SearchMetric::cosine;
  if (name == "inner_product") return SearchMetric::inner_product;
  throw unknown_name("metric", name, {"euclidean", "cosine", "inner_product"});
}

HnswOptions options_of(const std::string& metric, std::size_t n_links, std::size_t ef_construction,
                       bool has_codes, std::uint64_t seed) {
  return {metric_named(metric), n_links, ef_construction, has_codes, seed};
}

using Allowed = std::optional<Array<std::uint8_t>>;

const std::uint8_t* checked(const Hnsw& index, const Allowed& allowed) {
  if (!allowed) return nullptr;
  if (allowed->shape(0) != index.size()) throw InputError("Hnsw: allowed differs in length");
  return allowed->data();
}

void check_columns(const Hnsw& index, const Matrix<float>& values) {
  if (values.shape(1) != index.n_features()) {
    throw InputError("Hnsw: wrong number of columns");
  }
}

Hnsw::Answer checked(const OutArray<float>& distances, const OutArray<Slot>& slots,
                     std::size_t size) {
  if (distances.size() != size || slots.size() != size) {
    throw InputError("Hnsw: an output differs in size");
  }
  return {distances.data(), slots.data()};
}

nb::dict state_of(const Hnsw& index) {
  const VectorStore& store = index.store();
  const HnswGraph& graph = index.graph();
  std::vector<float> vectors(index.size() * index.n_features());
  for (std::size_t i = 0; i < index.size(); ++i) {
    const float* const row = store.row(static_cast<Slot>(i));
    std::copy(row, row + index.n_features(), vectors.data() + i * index.n_features());
  }
  std::vector<Slot> links(graph.links.data(), graph.links.data() + index.size() * graph.width);
  nb::dict out;
  out["vectors"] = to_numpy(std::move(vectors));
  out["links"] = to_numpy(std::move(links));
  out["post_slots"] = to_numpy(std::vector<Slot>(graph.upper.slots));
  out["post_levels"] = to_numpy(std::vector<std::uint8_t>(graph.upper.levels));
  out["post_links"] = to_numpy(std::vector<Post>(graph.upper.links));
  out["deleted"] = to_numpy(std::vector<std::uint8_t>(index.deleted()));
  out["code_offsets"] = to_numpy(std::vector<float>(
      store.offsets().begin(),
      store.offsets().begin() + (store.offsets().empty() ? 0 : index.n_features())));
  out["code_scale"] = store.scale();
  out["top"] = graph.top;
  out["ground"] = graph.ground;
  return out;
}

}  // namespace

void bind_hnsw(nb::module_& m) {
  nb::class_<Hnsw>(m, "Hnsw")
      .def(
          "__init__",
          [](Hnsw* self, std::size_t n_features, const std::string& metric, std::size_t n_links,
             std::size_t ef_construction, bool has_codes, std::uint64_t seed) {
            new (self)
                Hnsw(options_of(metric, n_links, ef_construction, has_codes, seed), n_features);
          },
          nb::arg("n_features"), nb::kw_only(), nb::arg("metric"), nb::arg("n_links"),
          nb::arg("ef_construction"), nb::arg("has_codes"), nb::arg("seed"))
      .def_static(
          "from_state",
          [](std::size_t n_features, const std::string& metric, std::size_t n_links,
             std::size_t ef_construction, bool has_codes, std::uint64_t seed,
             const Array<float>& vectors, const Array<Slot>& links, const Array<Slot>& post_slots,
             const Array<std::uint8_t>& post_levels, const Array<Post>& post_links,
             const Array<std::uint8_t>& deleted, const Array<float>& code_offsets,
             double code_scale, std::uint32_t top, std::uint32_t ground) {
            const HnswState state{view(vectors),
                                  view(links),
                                  view(post_slots),
                                  view(post_levels),
                                  view(post_links),
                                  view(deleted),
                                  view(code_offsets),
                                  code_scale,
                                  top,
                                  ground};
            return std::make_unique<Hnsw>(
                options_of(metric, n_links, ef_construction, has_codes, seed), n_features, state);
          },
          nb::arg("n_features"), nb::kw_only(), nb::arg("metric"), nb::arg("n_links"),
          nb::arg("ef_construction"), nb::arg("has_codes"), nb::arg("seed"), nb::arg("vectors"),
          nb::arg("links"), nb::arg("post_slots"), nb::arg("post_levels"), nb::arg("post_links"),
          nb::arg("deleted"), nb::arg("code_offsets"), nb::arg("code_scale"), nb::arg("top"),
          nb::arg("ground"))
      .def("state", &state_of)
      .def("deleted",
           [](const Hnsw& self) { return to_numpy(std::vector<std::uint8_t>(self.deleted())); })
      .def("__len__", &Hnsw::size)
      .def_prop_ro("n_deleted", &Hnsw::n_deleted)
      .def_prop_ro("n_bytes", &Hnsw::n_bytes)
      .def("reserve", &Hnsw::reserve, nb::arg("n_vectors"))
      .def(
          "add",
          [](Hnsw& self, const Matrix<float>& values, int n_threads) {
            check_columns(self, values);
            Watch watch(make_hook(nb::none()), values.shape(0));
            const nb::gil_scoped_release release;
            self.add(values.data(), values.shape(0), n_threads, watch);
          },
          nb::arg("values"), nb::arg("n_threads"))
      .def(
          "search",
          [](const Hnsw& self, const Matrix<float>& queries, std::size_t k, std::size_t ef,
             const Allowed& allowed, bool exact, int n_threads, const OutArray<float>& distances,
             const OutArray<Slot>& slots) {
            check_columns(self, queries);
            const std::size_t n = queries.shape(0);
            const Hnsw::Answer out = checked(distances, slots, n * k);
            const std::uint8_t* const mask = checked(self, allowed);
            Watch watch(make_hook(nb::none()), n);
            const nb::gil_scoped_release release;
            if (exact) {
              self.search_exactly(queries.data(), n, k, mask, n_threads, watch, out);
            } else {
              self.search(queries.data(), n, k, ef, mask, n_threads, watch, out);
            }
          },
          nb::arg("queries"), nb::kw_only(), nb::arg("k"), nb::arg("ef"), nb::arg("allowed").none(),
          nb::arg("exact"), nb::arg("n_threads"), nb::arg("distances"), nb::arg("slots"))
      .def(
          "erase",
          [](Hnsw& self, const Array<Slot>& slots) {
            const nb::gil_scoped_release release;
            self.erase(view(slots));
          },
          nb::arg("slots"))
      .def("reorder", [](Hnsw& self) {
        std::vector<Slot> order;
        {
          const nb::gil_scoped_release release;
          order = self.reorder();
        }
        return to_numpy(std::move(order));
      });
}
