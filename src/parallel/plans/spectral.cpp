// SPDX-License-Identifier: Apache-2.0
// How the models of Fourier and spherical harmonic transforms are split over tp: a transform needs all points of a channel, and
// no other channel.
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "parallel/plans/plan_context.h"
#include "parallel/plans/plans.h"

namespace welkin::parallel {
namespace {

int64_t hidden_features(const config::ModelConfig& config) {
  return std::llround(static_cast<double>(config.embed_dim) * config.mlp_ratio);
}

void refuse_split_tokens(const LayoutOptions& options) {
  if (!options.sequence_parallel) return;
  throw ConfigError("parallel", "a transform of the whole grid needs all its tokens: sequence_parallel=true",
                    "Leave sequence_parallel away");
}

void check_tp(const Mesh& mesh, const char* key, int64_t extent) {
  const int64_t tp = mesh.size(Axis::Tp);
  if (extent % tp == 0) return;
  throw ConfigError("parallel", cat("the channels cannot be split: ", key, "=", extent, ", tp=", tp),
                    cat("Sizes of tp that work: ", divisors_text(extent)));
}

}  // namespace

Plan afno_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                  const LayoutOptions& options) {
  refuse_split_tokens(options);
  check_tp(mesh, "num_blocks", config.num_blocks);
  check_tp(mesh, "embed_dim times mlp_ratio", hidden_features(config));
  const int64_t tokens = (shape.grid.at(0) / config.patch_size) * (shape.grid.at(1) / config.patch_size);
  return {.num_tokens = tokens,
          .rows = {{"pos_embed", AllTokens{}},
                   {"blocks.*.filter", GroupedChannels{Axis::Tp, /*group_dim=*/1}},
                   {"blocks.*.mlp.in", ColumnParallelInput{Axis::Tp}},
                   {"blocks.*.mlp.fc1", ColumnParallel{Axis::Tp}},
                   {"blocks.*.mlp.hidden_drop", ColumnMask{Axis::Tp}},
                   {"blocks.*.mlp.fc2", RowParallel{Axis::Tp}}}};
}

Plan sfno_plan_of(const config::ModelConfig& config, const model::ModelShape& /*shape*/, const Mesh& mesh,
                  const LayoutOptions& options) {
  refuse_split_tokens(options);
  check_tp(mesh, "embed_dim", config.embed_dim);
  check_tp(mesh, "embed_dim times mlp_ratio", hidden_features(config));
  return {.rows = {{"blocks.*.filter.filter", GatheredChannels{Axis::Tp, /*weight_dim=*/1}},
                   {"blocks.*.mlp.fwd.in", ColumnParallelInput{Axis::Tp}},
                   {"blocks.*.mlp.fwd.0", ColumnParallel{Axis::Tp}},
                   {"blocks.*.mlp.fwd.2", RowParallel{Axis::Tp}}}};
}

}  // namespace welkin::parallel
