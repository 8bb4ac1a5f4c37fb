// SPDX-License-Identifier: Apache-2.0
// The plan of the Swin transformer. Windows are cut from q, k and v, which a rank has for all tokens and its own heads: over tp
// it computes only these, over cp an all-to-all exchanges its tokens of all heads for them.
#include <cmath>

#include "parallel/plans/plans.h"
#include "parallel/plans/token_rows.h"

namespace welkin::parallel {

Plan swin_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                  const LayoutOptions& options) {
  const int64_t columns = shape.grid.at(1) / config.patch_size;
  const int64_t tokens = (shape.grid.at(0) / config.patch_size) * columns;
  const TokenAxes axes = token_axes({tokens, columns, config.dropout}, mesh, options);
  check_channels_divide("num_heads", config.num_heads, mesh, axes.ranks(mesh));
  check_channels_divide("embed_dim times mlp_ratio", std::llround(static_cast<double>(config.embed_dim) * config.mlp_ratio), mesh,
                        /*context_ranks=*/1);
  Plan plan{.num_tokens = tokens,
            .rows = {{"tokens.in", SplitTokens{axes.inner}},
                     {"blocks.*.attn.in", ColumnParallelInput{Axis::Tp}},
                     {"blocks.*.attn.qkv", ColumnParallel{Axis::Tp, /*parts=*/3, config.num_heads}},
                     {"blocks.*.attn.earth_position_bias_table", SplitParameter{Axis::Tp, /*dim=*/2}},
                     {"blocks.*.attn.windows", TokensToChannels{axes.context, /*parts=*/3, /*weight_dim=*/2}},
                     {"blocks.*.attn.proj", RowParallel{Axis::Tp}},
                     {"blocks.*.attn.proj_drop", TokenMask{}},
                     {"blocks.*.mlp.in", ColumnParallelInput{Axis::Tp}},
                     {"blocks.*.mlp.fc1", ColumnParallel{Axis::Tp}},
                     {"blocks.*.mlp.hidden_drop", ColumnMask{Axis::Tp}},
                     {"blocks.*.mlp.fc2", RowParallel{Axis::Tp}},
                     {"blocks.*.mlp.drop", TokenMask{}},
                     {"tokens.out", GatherTokens{axes.inner}}},
            .tokens_per_row = columns};
  add_split_input(plan, axes, /*with_positions=*/false);
  return plan;
}

}  // namespace welkin::parallel
