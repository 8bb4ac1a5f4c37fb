// SPDX-License-Identifier: Apache-2.0
#include "train/elastic/elastic_round.h"

#include <algorithm>

#include "config/schema/batch_plan.h"
#include "core/error.h"
#include "core/text.h"
#include "parallel/mesh/run_mesh.h"

namespace welkin::train {
namespace {

bool can_go_on(const config::RunConfig& config, int64_t size) {
  const int64_t model_size = config.parallel.model_size();
  if (size % model_size != 0) return false;
  const int64_t replicas = size / model_size;
  if (config.loop.global_batch_size % replicas != 0) return false;
  if (config.parallel.rank_invariant && config::kInvariantUnits % replicas != 0) return false;
  try {
    parallel::mesh_of(config.parallel, size);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace

bool is_replicated(const config::RunConfig& config) {
  return config.parallel.model_size() == 1 && config.parallel.shard == config::ShardStage::None;
}

std::vector<int64_t> sizes_of_run(const config::RunConfig& config, int64_t least, int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t size = most; size >= std::max<int64_t>(1, least); --size) {
    if (can_go_on(config, size)) sizes.push_back(size);
  }
  return sizes;
}

config::RunConfig config_for(config::RunConfig config, int64_t size) {
  config.loop.local_batch_size = config.loop.global_batch_size / (size / config.parallel.model_size());
  return config;
}

void check_elastic_sizes(const config::RunConfig& config, int64_t least, int64_t most) {
  if (least == most || !sizes_of_run(config, least, most - 1).empty()) return;
  std::vector<int64_t> sizes = sizes_of_run(config, 1, most);
  std::ranges::reverse(sizes);
  throw ConfigError(
      "elastic",
      cat("no smaller number of ranks in these limits can train the run: elastic=", least, ":", most,
          ", global_batch_size=", config.loop.global_batch_size, ", ranks of a model=", config.parallel.model_size(),
          config.parallel.rank_invariant ? ", rank_invariant=true" : "", ", sizes that can=[", join(sizes, ", "), "]"),
      "Lower MIN to one of these sizes, or take MIN equal to MAX where lost ranks are only to be started again");
}

}  // namespace welkin::train
