// Features in random order, drawn without replacement.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "spinney/common/random.h"

namespace spinney::tree {

// Draws from a list; the destructor restores its order, so that a draw depends only on the node's
// random stream. `swaps` is scratch.
class FeatureDraw {
 public:
  using Swaps = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

  FeatureDraw(std::vector<std::int32_t>& features, Swaps& swaps, common::Stream stream)
      : features_(features), swaps_(swaps), stream_(stream) {
    swaps_.clear();
  }
  ~FeatureDraw() {
    for (auto swap = swaps_.rbegin(); swap != swaps_.rend(); ++swap) {
      std::swap(features_[swap->first], features_[swap->second]);
    }
  }
  FeatureDraw(const FeatureDraw&) = delete;
  FeatureDraw& operator=(const FeatureDraw&) = delete;

  bool has_next() const { return swaps_.size() < features_.size(); }
  std::int32_t next() {
    const std::size_t at = swaps_.size();
    const std::size_t chosen = at + stream_.below(features_.size() - at);
    std::swap(features_[at], features_[chosen]);
    swaps_.emplace_back(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(chosen));
    return features_[at];
  }

 private:
  std::vector<std::int32_t>& features_;
  Swaps& swaps_;
  common::Stream stream_;
};

}  // namespace spinney::tree
