// SPDX-License-Identifier: Apache-2.0
#include "launch/elastic/job_size.h"

#include "core/text.h"

namespace welkin::launch {
namespace {

std::string size_of(const ElasticPlan& plan) { return cat("-n ", plan.num_local, " --nnodes ", plan.num_nodes); }

}  // namespace

void tell_size(JobBoard& board, const ElasticPlan& plan) { board.set(size_key(plan.node), size_of(plan)); }

std::string size_problem(JobBoard& board, const ElasticPlan& plan) {
  const int64_t first = plan.node == 0 ? 1 : 0, end = plan.node == 0 ? plan.num_nodes : 1;
  for (int64_t node = first; node < end; ++node) {
    const auto told = board.read(size_key(node));
    if (!told || *told == size_of(plan)) continue;
    return cat("the nodes were started with other numbers: node ", plan.node, " with ", size_of(plan), ", node ", node, " with ",
               *told);
  }
  return {};
}

}  // namespace welkin::launch
