// The binding converts, releases the GIL and calls. Nothing is computed here.
#include "bindings.h"

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);
  bind_common(m);
  bind_table(m);
  bind_tree(m);
  bind_ensemble(m);
  bind_adaboost(m);
  bind_boosting(m);
  bind_multiway(m);
  bind_neighbors(m);
  bind_distance(m);
  bind_gower(m);
  bind_local(m);
  bind_hnsw(m);
  bind_linear(m);
  bind_perceptron(m);
  bind_mixture(m);
  bind_explain(m);
  bind_dependence(m);
}
