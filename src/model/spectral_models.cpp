// SPDX-License-Identifier: Apache-2.0
// Models with Fourier and spherical harmonic transforms: checks configuration and data shape, and makes options from them.
#include "core/text.h"
#include "model/afno/afno.h"
#include "model/afno/afno_cost.h"
#include "model/builtin_entries.h"
#include "model/option_checks.h"
#include "model/sfno/sfno.h"
#include "model/sfno/sfno_cost.h"

namespace welkin::model {
namespace {

AfnoOptions afno_options(const config::ModelConfig& config, const ModelShape& shape) {
  Problems problems("afno");
  require_field(problems, shape);
  require_patch_sizes(problems, config, "num_blocks", config.num_blocks);
  const int64_t mlp_width = checked_mlp_width(problems, config);
  require_patches(problems, config, shape);
  problems.require(
      config.embed_dim % config.num_blocks == 0,
      cat("blocks of channels must divide the width: embed_dim=", config.embed_dim, ", num_blocks=", config.num_blocks));
  require_dropout(problems, config);
  const std::vector<ResidualRun> runs = checked_residual(problems, config, shape);
  return {.height = shape.grid[0],
          .width = shape.grid[1],
          .patch = config.patch_size,
          .in_channels = shape.in_channels,
          .out_channels = shape.out_channels,
          .embed_dim = config.embed_dim,
          .depth = config.depth,
          .num_blocks = config.num_blocks,
          .mlp_width = mlp_width,
          .sparsity_threshold = config.sparsity_threshold,
          .dropout = config.dropout,
          .residual = config.residual,
          .newest_input_channel = shape.newest_input_channel,
          .residual_runs = runs};
}

SfnoOptions sfno_options(const config::ModelConfig& config, const ModelShape& shape) {
  Problems problems("sfno");
  require_field(problems, shape);
  problems.require(config.embed_dim > 0 && config.depth > 0 && config.scale_factor > 0 && config.mlp_ratio > 0,
                   cat("sizes must be positive: embed_dim=", config.embed_dim, ", depth=", config.depth,
                       ", scale_factor=", config.scale_factor, ", mlp_ratio=", config.mlp_ratio));
  problems.finish();
  const int64_t mlp_width = checked_mlp_width(problems, config);
  for (const int64_t extent : shape.grid) {
    problems.require(
        extent >= 2 && extent / config.scale_factor >= 1,
        cat("the coarser grid must have points: grid=[", join(shape.grid, ", "), "], scale_factor=", config.scale_factor));
  }
  problems.require(
      (shape.grid[0] / config.scale_factor) * (shape.grid[1] / config.scale_factor) > 1,
      cat("norms need two points on the coarser grid: grid=[", join(shape.grid, ", "), "], scale_factor=", config.scale_factor));
  require_dropout(problems, config);
  const std::vector<ResidualRun> runs = checked_residual(problems, config, shape);
  return {.height = shape.grid[0],
          .width = shape.grid[1],
          .in_channels = shape.in_channels,
          .out_channels = shape.out_channels,
          .embed_dim = config.embed_dim,
          .depth = config.depth,
          .scale_factor = config.scale_factor,
          .mlp_width = mlp_width,
          .grid = config.model_grid_type,
          .dropout = config.dropout,
          .residual = config.residual,
          .newest_input_channel = shape.newest_input_channel,
          .residual_runs = runs};
}

}  // namespace

ModelEntry afno_entry() {
  return {
      .build = [](const config::ModelConfig& config, const ModelShape& shape) -> ModelPtr {
        return std::make_shared<Afno>(afno_options(config, shape));
      },
      .cost = [](const config::ModelConfig& config, const ModelShape& shape) { return afno_cost(afno_options(config, shape)); },
      .memory =
          [](const config::RunConfig& config, const ModelShape& shape) {
            const bool is_mixed = config.precision.amp_mode != config::AmpMode::None;
            return afno_memory_cost(afno_options(config.model, shape), checkpointed_blocks(config), is_mixed);
          },
      .default_loss = "relative_l2",
      .grid_rank = 2,
      .around_globe = "Fourier transform",
      .has_attention = false,
      .has_convolutions = false};
}

ModelEntry sfno_entry() {
  return {
      .build = [](const config::ModelConfig& config, const ModelShape& shape) -> ModelPtr {
        return std::make_shared<Sfno>(sfno_options(config, shape));
      },
      .cost = [](const config::ModelConfig& config, const ModelShape& shape) { return sfno_cost(sfno_options(config, shape)); },
      .memory =
          [](const config::RunConfig& config, const ModelShape& shape) {
            return sfno_memory_cost(sfno_options(config.model, shape), checkpointed_blocks(config));
          },
      .default_loss = "relative_l2",
      .grid_rank = 2,
      .around_globe = "spherical transform",
      .has_attention = false,
      .has_convolutions = false};
}

}  // namespace welkin::model
