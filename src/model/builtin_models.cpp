// SPDX-License-Identifier: Apache-2.0
// The built-in models: checks configuration and data shape, makes options from them, and from these the model and its
// cost.
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "model/builtin_entries.h"
#include "model/option_checks.h"
#include "model/registry.h"
#include "model/unet/unet3d.h"
#include "model/unet/unet3d_cost.h"
#include "model/vit/vit.h"
#include "model/vit/vit_cost.h"

namespace welkin::model {
namespace {

VitOptions vit_options(const config::ModelConfig& config, const ModelShape& shape) {
  Problems problems("vit");
  require_field(problems, shape);
  require_patch_sizes(problems, config, "num_heads", config.num_heads);
  const int64_t mlp_width = checked_mlp_width(problems, config);
  require_patches(problems, config, shape);
  require_heads(problems, config);
  require_dropout(problems, config);
  const std::vector<ResidualRun> runs = checked_residual(problems, config, shape);
  return {.height = shape.grid[0],
          .width = shape.grid[1],
          .patch = config.patch_size,
          .in_channels = shape.in_channels,
          .out_channels = shape.out_channels,
          .embed_dim = config.embed_dim,
          .depth = config.depth,
          .num_heads = config.num_heads,
          .mlp_width = mlp_width,
          .joint_qkv = config.qkv == config::QkvLayout::Joint,
          .dropout = config.dropout,
          .residual = config.residual,
          .newest_input_channel = shape.newest_input_channel,
          .residual_runs = runs};
}

Unet3dOptions unet3d_options(const config::ModelConfig& config, const ModelShape& shape) {
  const int64_t scales = config.scales > 0 ? config.scales : (config.full_scale ? 6 : 5);
  Problems problems("unet3d");
  require_channels(problems, shape);
  problems.require(shape.grid.size() == 3, cat("the grid must be a box of three edges: grid=[", join(shape.grid, ", "), "]"));
  problems.require(config.width > 0, cat("width must be positive: width=", config.width));
  problems.require(scales >= 2 && scales <= 6, cat("scales lie in 2..6: scales=", scales));
  problems.require(!config.residual, "residual prediction is an option of models of fields: residual=true");
  problems.finish();
  const int64_t cells = int64_t{1} << scales;
  for (const int64_t edge : shape.grid) {
    problems.require(edge > 0 && edge % cells == 0, cat("every edge must be divisible by 2^scales: grid=[",
                                                        join(shape.grid, ", "), "], scales=", scales, ", 2^scales=", cells));
  }
  problems.finish();
  return {.in_channels = shape.in_channels,
          .out_channels = shape.out_channels,
          .width = config.width,
          .scales = scales,
          .conv_deviation = config.weight_init.conv_scale,
          .conv_bias = config.weight_init.conv_bias};
}

AttentionSize vit_attention(const VitOptions& options) {
  return {.heads = options.num_heads,
          .head_dim = options.embed_dim / options.num_heads,
          .tokens = (options.height / options.patch) * (options.width / options.patch)};
}

MemoryCost vit_memory(const config::RunConfig& config, const ModelShape& shape) {
  return vit_memory_cost(vit_options(config.model, shape), checkpointed_blocks(config));
}

ModelEntry vit_entry() {
  return {.build = [](const config::ModelConfig& config, const ModelShape& shape) -> ModelPtr {
            return std::make_shared<Vit>(vit_options(config, shape));
          },
          .cost = [](const config::ModelConfig& config, const ModelShape& shape) { return vit_cost(vit_options(config, shape)); },
          .memory = vit_memory,
          .attention = [](const config::ModelConfig& config,
                          const ModelShape& shape) { return vit_attention(vit_options(config, shape)); },
          .default_loss = "relative_l2",
          .grid_rank = 2,
          .has_attention = true,
          .has_convolutions = false};
}

std::array<int64_t, 3> edges_of(const ModelShape& shape) { return {shape.grid.at(0), shape.grid.at(1), shape.grid.at(2)}; }

ModelEntry unet3d_entry() {
  return {
      .build = [](const config::ModelConfig& config, const ModelShape& shape) -> ModelPtr {
        return std::make_shared<Unet3d>(unet3d_options(config, shape));
      },
      .cost = [](const config::ModelConfig& config,
                 const ModelShape& shape) { return unet3d_cost(unet3d_options(config, shape), edges_of(shape)); },
      .memory = [](const config::RunConfig& config,
                   const ModelShape& shape) { return unet3d_memory_cost(unet3d_options(config.model, shape), edges_of(shape)); },
      .default_loss = "l1_rho",
      .grid_rank = 3,
      .has_attention = false,
      .has_convolutions = true};
}

}  // namespace

void add_builtin_models(Registry& registry) {
  registry.add("vit", vit_entry());
  registry.add("afno", afno_entry());
  registry.add("sfno", sfno_entry());
  registry.add("swin", swin_entry());
  registry.add("unet2d", unet2d_entry());
  registry.add("unet3d", unet3d_entry());
}

}  // namespace welkin::model
