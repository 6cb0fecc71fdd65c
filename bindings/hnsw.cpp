#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/neighbors/hnsw.h"
#include "tree.h"

namespace nb = nanobind;

namespace spinney::bindings {

namespace {

neighbors::SearchMetric metric_named(const std::string& name) {
  if (name == "euclidean") return neighbors::SearchMetric::euclidean;
  if (name == "cosine") return neighbors::SearchMetric::cosine;
  if (name == "inner_product") return neighbors::SearchMetric::inner_product;
  throw unknown_name("metric", name, {"euclidean", "cosine", "inner_product"});
}

neighbors::HnswOptions options_of(const std::string& metric, std::size_t M,
                                  std::size_t ef_construction, bool has_codes, std::uint64_t seed) {
  return {metric_named(metric), M, ef_construction, has_codes, seed};
}

using Allowed = std::optional<Array<std::uint8_t>>;

const std::uint8_t* checked(const neighbors::Hnsw& index, const Allowed& allowed) {
  if (!allowed) return nullptr;
  if (allowed->shape(0) != index.size()) {
    throw common::InputError("HNSW: allowed must have one value per vector");
  }
  return allowed->data();
}

void check_columns(const neighbors::Hnsw& index, const Matrix<float>& values) {
  if (values.shape(1) != index.n_features()) {
    throw common::InputError("HNSW: rows must have as many features as the index");
  }
}

neighbors::Hnsw::Results checked(const OutArray<float>& distances,
                                 const OutArray<neighbors::Slot>& slots, std::size_t size) {
  if (distances.size() != size || slots.size() != size) {
    throw common::InputError("HNSW: distances and slots must have shape (n_queries, k)");
  }
  return {distances.data(), slots.data()};
}

// The arrays of a graph, with the names of the file format: "post" is an upper node, "top" the
// entry point and "ground" that of the base layer.
nb::dict state_of(const neighbors::Hnsw& index) {
  const neighbors::VectorStore& store = index.store();
  const neighbors::HnswGraph& graph = index.graph();
  std::vector<float> vectors(index.size() * index.n_features());
  for (std::size_t i = 0; i < index.size(); ++i) {
    const float* const row = store.row(static_cast<neighbors::Slot>(i));
    std::copy(row, row + index.n_features(), vectors.data() + i * index.n_features());
  }
  std::vector<neighbors::Slot> links(graph.links.data(),
                                     graph.links.data() + index.size() * graph.width);
  nb::dict out;
  out["vectors"] = to_numpy(std::move(vectors));
  out["links"] = to_numpy(std::move(links));
  out["post_slots"] = to_numpy(std::vector<neighbors::Slot>(graph.upper.slots));
  out["post_levels"] = to_numpy(std::vector<std::uint8_t>(graph.upper.levels));
  out["post_links"] = to_numpy(std::vector<neighbors::UpperNode>(graph.upper.links));
  out["deleted"] = to_numpy(std::vector<std::uint8_t>(index.deleted()));
  out["code_offsets"] = to_numpy(std::vector<float>(
      store.offsets().begin(),
      store.offsets().begin() + (store.offsets().empty() ? 0 : index.n_features())));
  out["code_scale"] = store.scale();
  out["top"] = graph.entry_node;
  out["ground"] = graph.base_entry;
  return out;
}

}  // namespace

void bind_hnsw(nb::module_& m) {
  nb::class_<neighbors::Hnsw>(m, "Hnsw")
      .def(
          "__init__",
          [](neighbors::Hnsw* self, std::size_t n_features, const std::string& metric,
             std::size_t M, std::size_t ef_construction, bool has_codes, std::uint64_t seed) {
            new (self) neighbors::Hnsw(options_of(metric, M, ef_construction, has_codes, seed),
                                       n_features);
          },
          nb::arg("n_features"), nb::kw_only(), nb::arg("metric"), nb::arg("M"),
          nb::arg("ef_construction"), nb::arg("has_codes"), nb::arg("seed"))
      .def_static(
          "from_state",
          [](std::size_t n_features, const std::string& metric, std::size_t M,
             std::size_t ef_construction, bool has_codes, std::uint64_t seed,
             const Array<float>& vectors, const Array<neighbors::Slot>& links,
             const Array<neighbors::Slot>& upper_slots, const Array<std::uint8_t>& upper_levels,
             const Array<neighbors::UpperNode>& upper_links, const Array<std::uint8_t>& deleted,
             const Array<float>& code_offsets, double code_scale, std::uint32_t entry_node,
             std::uint32_t base_entry) {
            const neighbors::HnswState state{
                view(vectors),     view(links),   view(upper_slots),  view(upper_levels),
                view(upper_links), view(deleted), view(code_offsets), code_scale,
                entry_node,        base_entry};
            return std::make_unique<neighbors::Hnsw>(
                options_of(metric, M, ef_construction, has_codes, seed), n_features, state);
          },
          nb::arg("n_features"), nb::kw_only(), nb::arg("metric"), nb::arg("M"),
          nb::arg("ef_construction"), nb::arg("has_codes"), nb::arg("seed"), nb::arg("vectors"),
          nb::arg("links"), nb::arg("post_slots"), nb::arg("post_levels"), nb::arg("post_links"),
          nb::arg("deleted"), nb::arg("code_offsets"), nb::arg("code_scale"), nb::arg("top"),
          nb::arg("ground"))
      .def("state", &state_of)
      .def("deleted",
           [](const neighbors::Hnsw& self) {
             return to_numpy(std::vector<std::uint8_t>(self.deleted()));
           })
      .def("__len__", &neighbors::Hnsw::size)
      .def_prop_ro("n_deleted", &neighbors::Hnsw::n_deleted)
      .def_prop_ro("n_bytes", &neighbors::Hnsw::n_bytes)
      .def("reserve", &neighbors::Hnsw::reserve, nb::arg("n_vectors"))
      .def(
          "add",
          [](neighbors::Hnsw& self, const Matrix<float>& values, int n_threads) {
            check_columns(self, values);
            common::Watch watch(make_hook(nb::none()), values.shape(0));
            const nb::gil_scoped_release release;
            self.add(values.data(), values.shape(0), n_threads, watch);
          },
          nb::arg("values"), nb::arg("n_threads"))
      .def(
          "search",
          [](const neighbors::Hnsw& self, const Matrix<float>& queries, std::size_t k,
             std::size_t ef, const Allowed& allowed, bool exact, int n_threads,
             const OutArray<float>& distances, const OutArray<neighbors::Slot>& slots) {
            check_columns(self, queries);
            const std::size_t n = queries.shape(0);
            const neighbors::Hnsw::Results out = checked(distances, slots, n * k);
            const std::uint8_t* const mask = checked(self, allowed);
            common::Watch watch(make_hook(nb::none()), n);
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
          [](neighbors::Hnsw& self, const Array<neighbors::Slot>& slots) {
            const nb::gil_scoped_release release;
            self.erase(view(slots));
          },
          nb::arg("slots"))
      .def("reorder", [](neighbors::Hnsw& self) {
        std::vector<neighbors::Slot> order;
        {
          const nb::gil_scoped_release release;
          order = self.reorder();
        }
        return to_numpy(std::move(order));
      });
}

}  // namespace spinney::bindings
