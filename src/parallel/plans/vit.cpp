// SPDX-License-Identifier: Apache-2.0
#include "parallel/plans/vit.h"

#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "parallel/plans/plans.h"
#include "parallel/plans/token_rows.h"

namespace welkin::parallel {
namespace {

// "tp=1 cp=2, tp=2 cp=1": the pairs that divide the ranks and give every rank whole heads.
std::string working_pairs(int64_t heads, int64_t ranks) {
  std::vector<std::string> pairs;
  for (int64_t tp = 1; tp <= ranks; ++tp) {
    for (int64_t cp = 1; cp * tp <= ranks; ++cp) {
      if (heads % (tp * cp) == 0 && ranks % (tp * cp) == 0) pairs.push_back(cat("tp=", tp, " cp=", cp));
    }
  }
  return join(pairs, ", ");
}

void check_heads(const VitLayout& vit, const Mesh& mesh, int64_t cp, const LayoutOptions& options) {
  const int64_t tp = mesh.size(Axis::Tp);
  const bool all_to_all = options.context_mode == ContextMode::AllToAll;
  if (vit.num_heads % (tp * (all_to_all ? cp : 1)) == 0) return;
  throw ConfigError("parallel",
                    cat("the attention heads cannot be split: num_heads=", vit.num_heads, ", tp=", tp, ", cp=", cp,
                        ", context_mode=", context_mode_name(options.context_mode)),
                    cat(all_to_all ? "All-to-all needs heads that divide by tp times cp" : "Heads must divide by tp",
                        "; what works on this many ranks: ", working_pairs(vit.num_heads, mesh.world_size())));
}

// A member of an all-to-all has all tokens, in the rows of the field. Else queries and keys are in blocks, for which no masks of
// attention are drawn.
void check_masks(const VitLayout& vit, const Mesh& mesh, const LayoutOptions& options) {
  if (mesh.size(Axis::W) == 1 || vit.dropout == 0.0 || options.context_mode == ContextMode::AllToAll) return;
  throw ConfigError(
      "parallel",
      cat("dropout needs whole rows of tokens: dropout=", vit.dropout, ", ranks along the width of spatial=", mesh.size(Axis::W),
          ", context_mode=", context_mode_name(options.context_mode)),
      cat("Set context_mode to all_to_all, cut the height alone (--spatial 1x", mesh.size(kSpatial), "x1), or set dropout to 0"));
}

void check_hidden(const VitLayout& vit, const Mesh& mesh) {
  const int64_t tp = mesh.size(Axis::Tp);
  if (vit.mlp_width % tp == 0) return;
  throw ConfigError("parallel", cat("the hidden features cannot be split: mlp width=", vit.mlp_width, ", tp=", tp),
                    "Take a tensor_parallel that divides embed_dim times mlp_ratio");
}

}  // namespace

Plan vit_plan(const VitLayout& vit, const Mesh& mesh, const LayoutOptions& options) {
  const TokenAxes axes = token_axes({vit.num_tokens, vit.tokens_per_row, vit.dropout}, mesh, options);
  const AxisSet context = axes.context;
  check_heads(vit, mesh, axes.ranks(mesh), options);
  check_masks(vit, mesh, options);
  check_hidden(vit, mesh);
  Plan plan{.num_tokens = vit.num_tokens, .rows = {}, .input_axes = {}, .tokens_per_row = vit.tokens_per_row};
  auto& rows = plan.rows;
  rows = {
      {"pos_embed", AllTokens{}},
      {"tokens.in", SplitTokens{axes.inner}},
      {"pos_drop", TokenMask{}},
      {"blocks.*.attn.in", ColumnParallelInput{Axis::Tp}},
      {"blocks.*.attn.core", ContextParallelAttention{context, options.context_mode}},
      {"blocks.*.attn.attn_drop", AttentionMask{Axis::Tp, context, options.context_mode}},
      {"blocks.*.attn.proj", RowParallel{Axis::Tp}},
      {"blocks.*.attn.proj_drop", TokenMask{}},
      {"blocks.*.mlp.in", ColumnParallelInput{Axis::Tp}},
      {"blocks.*.mlp.fc1", ColumnParallel{Axis::Tp}},
      {"blocks.*.mlp.hidden_drop", ColumnMask{Axis::Tp}},
      {"blocks.*.mlp.fc2", RowParallel{Axis::Tp}},
      {"blocks.*.mlp.drop", TokenMask{}},
      {"tokens.out", GatherTokens{axes.inner}},
  };
  add_split_input(plan, axes, /*with_positions=*/true);
  if (vit.joint_qkv) {
    rows.push_back({"blocks.*.attn.qkv", ColumnParallel{Axis::Tp, /*parts=*/3, vit.num_heads}});
  } else {
    for (const char* name : {"q", "k", "v"}) {
      rows.push_back({cat("blocks.*.attn.", name), ColumnParallel{Axis::Tp, /*parts=*/1, vit.num_heads}});
    }
  }
  return plan;
}

Plan vit_plan_of(const config::ModelConfig& config, const model::ModelShape& shape, const Mesh& mesh,
                 const LayoutOptions& options) {
  const int64_t patches = (shape.grid.at(0) / config.patch_size) * (shape.grid.at(1) / config.patch_size);
  return vit_plan({.num_tokens = patches,
                   .num_heads = config.num_heads,
                   .joint_qkv = config.qkv == config::QkvLayout::Joint,
                   .mlp_width = std::llround(static_cast<double>(config.embed_dim) * config.mlp_ratio),
                   .dropout = config.dropout,
                   .tokens_per_row = shape.grid.at(1) / config.patch_size},
                  mesh, options);
}

}  // namespace welkin::parallel
