// Builds a k-d tree. Threads build subtrees in any order; the tree depends on the points alone.
#pragma once

#include "spinney/neighbors/kd_tree.h"

namespace spinney::neighbors {

class KdBuilder {
 public:
  KdBuilder(KdTree& tree, const double* points, std::size_t leaf_size, int n_threads);
  void build();

 private:
  // A range of points that is not split yet, in one of the two buffers.
  struct Range {
    common::Row begin;
    common::Row end;
    int buffer;
    std::size_t node;
  };
  // A subtree that one thread builds.
  struct Subtree {
    Range range;
    std::vector<KdTree::Node> nodes;  // the first one is the root of the subtree
    std::vector<double> boxes;
    std::vector<double> coordinates;
  };
  struct Scratch {
    std::vector<double> keys;
    std::vector<double> sample;
  };

  double* points(int buffer) { return buffer == 0 ? first_.data() : second_.data(); }
  common::Row* rows(int buffer) { return buffer == 0 ? first_rows_.data() : second_rows_.data(); }

  void find_box(const Range& range, double* box);
  // Splits a range along the widest side of its box, into the other buffer. Returns the first
  // position of the right child.
  common::Row split(const Range& range, const double* box, Scratch& scratch);
  void fill_node(const Range& range, KdTree::Node& node);
  bool is_leaf(const Range& range, const double* box) const;
  void add_leaf(const Range& range, const double* box, KdTree::Node& node,
                std::vector<double>& coordinates);
  void finish(Subtree& subtree, Scratch& scratch);
  void assemble(std::vector<Subtree>& subtrees);

  KdTree& tree_;
  std::size_t n_;
  std::size_t d_;
  std::size_t leaf_size_;
  int n_threads_;
  common::LargeArray<double> first_;
  common::LargeArray<double> second_;
  std::vector<common::Row> first_rows_;
  std::vector<common::Row> second_rows_;
};

}  // namespace spinney::neighbors
