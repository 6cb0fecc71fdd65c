// Shapley values of one leaf for every pattern at once.
//
// With g(S) = share(N \ S), a coalition S within the pattern a is worth g(S), any other nothing. So
// all that a feature adds are sums over subsets of a, and one sweep over the bits ("zeta
// transform") gives these for all patterns: m·2^m additions for a table of 2^m patterns.
#pragma once

#include <cstddef>
#include <vector>

namespace spinney::explain {

class LeafGame {
 public:
  // share[U] for every set U of the path's m features; the empty set's is 1.
  void set(std::size_t m, const std::vector<double>& share);

  // out[pattern][feature]
  void values(std::vector<double>& out);
  // out[pattern][pair i < j, in the order (0,1), (0,2), …]: half of the interaction index, the part
  // of each of the elements (i, j) and (j, i) of the matrix of interactions.
  void interactions(std::vector<double>& out);

 private:
  // Σ over subsets S of each pattern of weight(|S|-shift) · g(S), weights of m - order others.
  void sum_subsets(std::size_t order, std::size_t shift, std::vector<double>& out) const;

  std::size_t m_ = 0;
  std::vector<double> worth_;  // g
  std::vector<double> none_, one_, both_;
};

// share[U] = Π of the shares of U's members.
void multiply_shares(const double* shares, std::size_t m, std::vector<double>& out);
// In place: replaces the value of each pattern by the sum over its supersets.
void sum_supersets(std::size_t m, std::vector<double>& values);

// a! b! / (a + b + 1)! = ∫ t^a (1-t)^b dt
double beta(std::size_t a, std::size_t b);

}  // namespace spinney::explain
