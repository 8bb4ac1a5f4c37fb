// SPDX-License-Identifier: Apache-2.0
// The Swin transformer and the U-Net of fields: checks configuration and data shape, and makes options from them.
#include <array>

#include "core/text.h"
#include "model/builtin_entries.h"
#include "model/option_checks.h"
#include "model/swin/swin.h"
#include "model/swin/swin_cost.h"
#include "model/unet/unet2d.h"
#include "model/unet/unet2d_cost.h"

namespace welkin::model {
namespace {

constexpr int64_t kUsualScales = 4;

SwinOptions swin_options(const config::ModelConfig& config, const ModelShape& shape) {
  Problems problems("swin");
  require_field(problems, shape);
  const bool has_window = config.window_size.size() == 2 && config.window_size[0] > 0 && config.window_size[1] > 0;
  problems.require(has_window, cat("a window has rows and columns: window_size=[", join(config.window_size, ", "), "]"));
  require_patch_sizes(problems, config, "num_heads", config.num_heads);
  const int64_t mlp_width = checked_mlp_width(problems, config);
  require_patches(problems, config, shape);
  const int64_t rows = shape.grid[0] / config.patch_size, columns = shape.grid[1] / config.patch_size;
  problems.require(rows % config.window_size[0] == 0 && columns % config.window_size[1] == 0,
                   cat("windows must divide the grid of patches: patches=[", rows, ", ", columns, "], window_size=[",
                       join(config.window_size, ", "), "]"));
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
          .window_rows = config.window_size[0],
          .window_columns = config.window_size[1],
          .dropout = config.dropout,
          .residual = config.residual,
          .newest_input_channel = shape.newest_input_channel,
          .residual_runs = runs};
}

Unet2dOptions unet2d_options(const config::ModelConfig& config, const ModelShape& shape) {
  const int64_t scales = config.scales > 0 ? config.scales : kUsualScales;
  Problems problems("unet2d");
  require_field(problems, shape);
  problems.require(config.width > 0, cat("width must be positive: width=", config.width));
  problems.finish();
  for (const int64_t extent : shape.grid) {
    problems.require(extent > 0 && extent % (int64_t{1} << scales) == 0,
                     cat("both edges must be divisible by 2^scales: grid=[", join(shape.grid, ", "), "], scales=", scales));
  }
  problems.require((shape.grid[0] >> scales) * (shape.grid[1] >> scales) > 1,
                   cat("norms need two points at the deepest scale: grid=[", join(shape.grid, ", "), "], scales=", scales));
  const std::vector<ResidualRun> runs = checked_residual(problems, config, shape);
  return {.in_channels = shape.in_channels,
          .out_channels = shape.out_channels,
          .width = config.width,
          .scales = scales,
          .residual = config.residual,
          .newest_input_channel = shape.newest_input_channel,
          .residual_runs = runs};
}

std::array<int64_t, 2> grid_of(const ModelShape& shape) { return {shape.grid.at(0), shape.grid.at(1)}; }

}  // namespace

ModelEntry swin_entry() {
  return {
      .build = [](const config::ModelConfig& config, const ModelShape& shape) -> ModelPtr {
        return std::make_shared<Swin>(swin_options(config, shape));
      },
      .cost = [](const config::ModelConfig& config, const ModelShape& shape) { return swin_cost(swin_options(config, shape)); },
      .memory =
          [](const config::RunConfig& config, const ModelShape& shape) {
            return swin_memory_cost(swin_options(config.model, shape), checkpointed_blocks(config),
                                    config.precision.amp_mode != config::AmpMode::None);
          },
      .default_loss = "relative_l2",
      .grid_rank = 2,
      .around_globe = "windows",
      .has_attention = false,
      .has_convolutions = false};
}

ModelEntry unet2d_entry() {
  return {
      .build = [](const config::ModelConfig& config, const ModelShape& shape) -> ModelPtr {
        return std::make_shared<Unet2d>(unet2d_options(config, shape));
      },
      .cost = [](const config::ModelConfig& config,
                 const ModelShape& shape) { return unet2d_cost(unet2d_options(config, shape), grid_of(shape)); },
      .memory = [](const config::RunConfig& config,
                   const ModelShape& shape) { return unet2d_memory_cost(unet2d_options(config.model, shape), grid_of(shape)); },
      .default_loss = "relative_l2",
      .grid_rank = 2,
      .around_globe = "convolutions",
      .has_attention = false,
      .has_convolutions = true};
}

}  // namespace welkin::model
