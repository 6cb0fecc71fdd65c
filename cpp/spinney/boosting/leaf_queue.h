// Leaves that can be split, in the order of a growth rule.
#pragma once

#include <algorithm>
#include <vector>

#include "spinney/boosting/growth.h"

namespace spinney::boosting {

template <class Node, GrowthOrder Order>
class LeafQueue {
 public:
  bool empty() const { return heap_.empty(); }
  Node* front() const { return heap_.front().node; }

  // index: that of the node in the tree.
  void push(Node& node, common::NodeIndex index) {
    heap_.push_back({{node.split.gain, node.depth, index}, &node});
    std::push_heap(heap_.begin(), heap_.end(), is_after);
  }

  Node* pop() {
    std::pop_heap(heap_.begin(), heap_.end(), is_after);
    Node* const node = heap_.back().node;
    heap_.pop_back();
    return node;
  }

  // The node has another split, or none any more. It need not be in the queue.
  void update(const Node& node) {
    const auto at = std::find_if(heap_.begin(), heap_.end(),
                                 [&](const Entry& entry) { return entry.node == &node; });
    if (at == heap_.end()) return;
    if (node.split.found()) {
      at->rank.gain = node.split.gain;
    } else {
      heap_.erase(at);
    }
    std::make_heap(heap_.begin(), heap_.end(), is_after);
  }

 private:
  struct Entry {
    LeafRank rank;
    Node* node;
  };

  static bool is_after(const Entry& a, const Entry& b) { return Order::before(b.rank, a.rank); }

  std::vector<Entry> heap_;
};

}  // namespace spinney::boosting
