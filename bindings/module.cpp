// The binding converts, releases the GIL and calls. Nothing is computed here.
#include "bindings.h"

namespace bindings = spinney::bindings;

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);
  bindings::bind_common(m);
  bindings::bind_table(m);
  bindings::bind_tree(m);
  bindings::bind_forest(m);
  bindings::bind_ensemble(m);
  bindings::bind_adaboost(m);
  bindings::bind_boosting(m);
  bindings::bind_multiway(m);
  bindings::bind_neighbors(m);
  bindings::bind_distance(m);
  bindings::bind_gower(m);
  bindings::bind_local(m);
  bindings::bind_hnsw(m);
  bindings::bind_linear(m);
  bindings::bind_perceptron(m);
  bindings::bind_mixture(m);
  bindings::bind_explain(m);
  bindings::bind_dependence(m);
}
