// Losses of rankings: rows come in groups (the documents of a query), and what counts is their
// order within a group. For each pair of rows of which one should come first, the logistic loss of
// the difference of their scores (RankNet), each pair weighted by what swapping the two would
// change in the discounted gain (LambdaMART).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spinney/loss/loss.h"

namespace spinney::loss {

struct RankingRules {
  bool by_gain = true;      // weigh pairs by the discounted gain; false: all the same
  std::size_t places = 30;  // a pair counts if one of its rows is among the first so many
};

// Derivatives of the rows of one group, rows [begin, end).
void rank_derivatives(const RankingRules& rules, const LossData& data, std::size_t begin,
                      std::size_t end, const Derivatives& out);

// One group: 1 − NDCG of the first `places` rows; or the mean logistic loss of its pairs. Groups
// in which nothing can be ordered have none: NaN.
double rank_loss(const RankingRules& rules, const LossData& data, std::size_t begin,
                 std::size_t end);

}  // namespace spinney::loss
