// SPDX-License-Identifier: Apache-2.0
// Plans of the models with Fourier and spherical harmonic transforms: a transform needs all points of a channel, but no other
// channel. If ranks share a sample, all-to-alls exchange points for channels before a transform and back behind it. The SFNO's
// matrices, which mix all channels of a degree, are between two such exchanges, split by degrees.
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/text.h"
#include "parallel/plans/plans.h"
#include "parallel/plans/token_rows.h"

namespace welkin::parallel {
namespace {

int64_t hidden_features(const config::ModelConfig& config) {
  return std::llround(static_cast<double>(config.embed_dim) * config.mlp_ratio);
}

// Degrees of each member.
Lengths degrees_of_members(int64_t degrees, int64_t ranks) {
  Lengths lengths;
  for (int64_t place = 0; place < ranks; ++place) lengths.push_back(block_of(degrees, ranks, place).size());
  return lengths;
}

// `axes`: of spatial, as users write them.
void check_cut(const char* parts, int64_t count, const char* axes, int64_t ranks) {
  if (count >= ranks) return;
  throw ConfigError(
      "parallel",
      cat("the inner grid has fewer ", parts, " than ranks to share them: ", parts, "=", count, ", ", axes, "=", ranks),
      cat("Take at most ", count, " ranks along ", axes, ", or a smaller scale_factor"));
}

}  // namespace

Plan afno_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                  const LayoutOptions& options) {
  const int64_t columns = shape.grid.at(1) / config.patch_size;
  const int64_t tokens = (shape.grid.at(0) / config.patch_size) * columns;
  const TokenAxes axes = token_axes({tokens, columns, config.dropout}, mesh, options);
  check_channels_divide("num_blocks", config.num_blocks, mesh, axes.ranks(mesh));
  check_channels_divide("embed_dim times mlp_ratio", hidden_features(config), mesh, /*context_ranks=*/1);
  Plan plan{.num_tokens = tokens,
            .rows = {{"pos_embed", AllTokens{}},
                     {"tokens.in", SplitTokens{axes.inner}},
                     {"pos_drop", TokenMask{}},
                     {"blocks.*.filter", TokensToChannels{axes.context, /*parts=*/1, /*weight_dim=*/1}},
                     {"blocks.*.filter", GroupedChannels{Axis::Tp, /*group_dim=*/1}},
                     {"blocks.*.mlp.in", ColumnParallelInput{Axis::Tp}},
                     {"blocks.*.mlp.fc1", ColumnParallel{Axis::Tp}},
                     {"blocks.*.mlp.hidden_drop", ColumnMask{Axis::Tp}},
                     {"blocks.*.mlp.fc2", RowParallel{Axis::Tp}},
                     {"blocks.*.mlp.drop", TokenMask{}},
                     {"tokens.out", GatherTokens{axes.inner}}},
            .tokens_per_row = columns};
  add_split_input(plan, axes, /*with_positions=*/true);
  return plan;
}

Plan sfno_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                  const LayoutOptions& options) {
  if (options.sequence_parallel) {
    throw ConfigError("parallel", "the SFNO has no tokens to split: sequence_parallel=true", "Leave sequence_parallel away");
  }
  const int64_t ranks = mesh.size(kSpatial);
  check_channels_divide("embed_dim", config.embed_dim, mesh, ranks);
  check_channels_divide("embed_dim times mlp_ratio", hidden_features(config), mesh, /*context_ranks=*/1);
  Plan plan{.rows = {{"blocks.*.filter.filter", GatheredChannels{Axis::Tp, /*weight_dim=*/1}},
                     {"blocks.*.mlp.fwd.in", ColumnParallelInput{Axis::Tp}},
                     {"blocks.*.mlp.fwd.0", ColumnParallel{Axis::Tp}},
                     {"blocks.*.mlp.fwd.2", RowParallel{Axis::Tp}}}};
  if (ranks == 1) return plan;
  const Cells outer{1, shape.grid.at(0), shape.grid.at(1)};
  const Cells inner{1, outer[1] / config.scale_factor, outer[2] / config.scale_factor};
  check_cut("rows", inner[1], "h", mesh.size(Axis::H));
  check_cut("columns", inner[2], "w", mesh.size(Axis::W));
  check_cut("degrees", inner[1], "h x w", ranks);
  plan.blocks = outer;
  const Lengths degrees = degrees_of_members(inner[1], ranks);
  for (int64_t i = 0; i < config.depth; ++i) {
    const Cells& from = i == 0 ? outer : inner;
    const Cells& to = i + 1 == config.depth ? outer : inner;
    const std::string block = cat("blocks.", i, ".");
    plan.rows.push_back({cat(block, "filter.analysis"), SphereAnalysis{from, to, degrees}});
    plan.rows.push_back({cat(block, "filter.filter.mix"), DegreeWeights{degrees}});
    plan.rows.push_back({cat(block, "filter.filter.synthesis"), SphereSynthesis{degrees, to}});
    for (const char* norm : {"norm0", "norm1"}) plan.rows.push_back({block + norm, BlockNorm{to}});
  }
  return plan;
}

}  // namespace welkin::parallel
