// Memory of histograms, reused from node to node and from tree to tree.
#pragma once

#include <mutex>
#include <vector>

#include "spinney/boosting/histogram.h"

namespace spinney::boosting {

class HistogramPool {
 public:
  explicit HistogramPool(std::size_t n_codes) : n_codes_(n_codes) {}

  // Takes back all histograms.
  void reset() {
    free_.clear();
    for (std::vector<PackedSum>& histogram : memory_) free_.push_back(histogram.data());
  }

  PackedSum* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      memory_.emplace_back(n_codes_);
      return memory_.back().data();
    }
    PackedSum* const histogram = free_.back();
    free_.pop_back();
    return histogram;
  }

  // Sets the pointer to null.
  void release(PackedSum*& histogram) {
    if (histogram == nullptr) return;
    const std::lock_guard lock(mutex_);
    free_.push_back(histogram);
    histogram = nullptr;
  }

 private:
  std::size_t n_codes_;
  std::mutex mutex_;
  std::vector<std::vector<PackedSum>> memory_;
  std::vector<PackedSum*> free_;
};

}  // namespace spinney::boosting
