#include "bits.h"

int main() {
  bits::print_elementary();
  bits::print_trees();
  bits::print_forests();
  bits::print_boosting();
  bits::print_multiway();
  bits::print_neighbors();
  bits::print_distances();
  bits::print_linear();
  bits::print_mixture();
  bits::print_explain();
  return 0;
}
