// SPDX-License-Identifier: Apache-2.0
// How the Swin transformer is split over tp. Windows are cut out of q, k and v, which a rank has of all tokens for its heads.
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "parallel/plans/plan_context.h"
#include "parallel/plans/plans.h"

namespace welkin::parallel {
namespace {

void check_parts(const Mesh& mesh, const char* key, int64_t extent) {
  const int64_t tp = mesh.size(Axis::Tp);
  if (extent % tp == 0) return;
  throw ConfigError("parallel", cat("the layers of a window cannot be split: ", key, "=", extent, ", tp=", tp),
                    cat("Sizes of tp that work: ", divisors_text(extent)));
}

}  // namespace

Plan swin_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                  const LayoutOptions& options) {
  check_parts(mesh, "num_heads", config.num_heads);
  check_parts(mesh, "embed_dim times mlp_ratio", std::llround(static_cast<double>(config.embed_dim) * config.mlp_ratio));
  const std::vector<Axis> axes = options.sequence_parallel ? std::vector<Axis>{Axis::Tp} : std::vector<Axis>{};
  const int64_t tokens = (shape.grid.at(0) / config.patch_size) * (shape.grid.at(1) / config.patch_size);
  return {.num_tokens = tokens,
          .rows = {{"tokens.in", SplitTokens{axes}},
                   {"blocks.*.attn.in", ColumnParallelInput{Axis::Tp}},
                   {"blocks.*.attn.qkv", ColumnParallel{Axis::Tp, /*parts=*/3, config.num_heads}},
                   {"blocks.*.attn.earth_position_bias_table", SplitParameter{Axis::Tp, /*dim=*/2}},
                   {"blocks.*.attn.proj", RowParallel{Axis::Tp}},
                   {"blocks.*.attn.proj_drop", TokenMask{}},
                   {"blocks.*.mlp.in", ColumnParallelInput{Axis::Tp}},
                   {"blocks.*.mlp.fc1", ColumnParallel{Axis::Tp}},
                   {"blocks.*.mlp.hidden_drop", ColumnMask{Axis::Tp}},
                   {"blocks.*.mlp.fc2", RowParallel{Axis::Tp}},
                   {"blocks.*.mlp.drop", TokenMask{}},
                   {"tokens.out", GatherTokens{axes}}}};
}

}  // namespace welkin::parallel
