// Ranking losses. Rows come in groups (the documents of a query), and only their order within the
// group matters. Each pair of rows with different relevance has the logistic loss of the difference
// of its scores (RankNet). LambdaMART weights a pair by the change in discounted gain if the two
// rows were swapped.
#pragma once

#include <cstdint>

#include "spinney/loss/loss.h"

namespace spinney::loss {

struct RankingRules {
  bool by_gain = true;       // weight pairs by the discounted gain; false: equally
  std::size_t ndcg_at = 30;  // cutoff: one row of a pair must be among the first ndcg_at
};

// Derivatives of the rows [begin, end) of one group.
void rank_derivatives(const RankingRules& rules, const LossData& data, std::size_t begin,
                      std::size_t end, const Derivatives& out);

// Loss of one group: 1 − NDCG@ndcg_at if by_gain, else the mean logistic loss of its pairs. NaN if
// no pair of rows differs in relevance.
double rank_loss(const RankingRules& rules, const LossData& data, std::size_t begin,
                 std::size_t end);

}  // namespace spinney::loss
