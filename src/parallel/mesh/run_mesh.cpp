// SPDX-License-Identifier: Apache-2.0
#include "parallel/mesh/run_mesh.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/schema/key.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {

namespace {

// The data-parallel ranks of one node.
int64_t replicas_of_node(const Mesh& mesh, int64_t ranks_per_node) {
  const std::vector<int64_t> ranks = mesh.group_of(0, kDp).ranks;
  return std::ranges::count_if(ranks, [&](int64_t rank) { return ranks_per_node == 0 || rank < ranks_per_node; });
}

// Order of the axes that the configured order does not name. Ranks that share a sample exchange halos in every layer, so they
// are nearer than replicas, but farther than ranks that split weights. Messages between stages are the rarest.
std::string order_of(const config::ParallelConfig& config) {
  std::vector<std::string> axes;
  for (const std::string_view name : config::split(config.parallel_order, '-')) axes.emplace_back(name);
  const std::array<std::pair<const char*, int64_t>, 3> blocks{
      {{"w", config.spatial.w}, {"h", config.spatial.h}, {"d", config.spatial.d}}};
  for (const auto& [name, ranks] : blocks) {
    const bool is_named = std::ranges::find(axes, name) != axes.end();
    if (ranks > 1 && !is_named) axes.insert(std::ranges::find(axes, "dp"), name);
  }
  if (config.pipeline_parallel > 1 && std::ranges::find(axes, "pp") == axes.end()) axes.emplace_back("pp");
  return join(axes, "-");
}

int64_t number_in(const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? number : 0;
}

// Number of data-parallel ranks, which `mesh` has as replicas, that share one training state.
int64_t shard_size_of(const config::ParallelConfig& config, const Mesh& mesh, int64_t ranks_per_node) {
  const int64_t replicas = mesh.size(kDp);
  if (config.shard == config::ShardStage::None) return 1;
  if (config.shard_group == "all") return replicas;
  const bool is_node = config.shard_group == "node";
  const int64_t size = is_node ? replicas_of_node(mesh, ranks_per_node) : number_in(config.shard_group);
  if (size >= 1 && replicas % size == 0) return size;
  throw ConfigError("parallel",
                    cat("the data-parallel ranks cannot be cut into such groups: shard_group=", config.shard_group,
                        is_node ? cat(", ranks of a node=", size) : "", ", data-parallel ranks=", replicas),
                    "Say all, node, or a number that divides them");
}

}  // namespace

Mesh mesh_of(const config::ParallelConfig& config, int64_t world_size, int64_t ranks_per_node) {
  MeshSizes sizes;
  sizes.tp = config.tensor_parallel;
  sizes.cp = config.context_parallel;
  sizes.pp = config.pipeline_parallel;
  sizes.d = config.spatial.d, sizes.h = config.spatial.h, sizes.w = config.spatial.w;
  const int64_t model_size = config.model_size();
  const std::string order = order_of(config);
  if (world_size % model_size != 0) {
    const bool is_spatial = config.spatial.size() > 1;
    throw ConfigError("parallel",
                      cat("tp times cp", is_spatial ? " times spatial" : "", sizes.pp > 1 ? " times pp" : "",
                          " does not divide the number of ranks: tp=", sizes.tp, ", cp=", sizes.cp,
                          is_spatial ? cat(", spatial=", config::text_of(config.spatial)) : "",
                          sizes.pp > 1 ? cat(", pp=", sizes.pp) : "", ", ranks=", world_size),
                      cat("Start a multiple of ", model_size, " processes"));
  }
  sizes.dp_replicate = world_size / model_size;
  const int64_t shards = shard_size_of(config, Mesh(order, sizes), ranks_per_node);
  sizes.dp_shard = shards;
  sizes.dp_replicate /= shards;
  return Mesh(order, sizes);
}

}  // namespace welkin::parallel
