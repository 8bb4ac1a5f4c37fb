// SPDX-License-Identifier: Apache-2.0
// The models that come with Welkin: from configuration and the data's shape to options, checked, and from these to model and
// cost.
#include <algorithm>
#include <array>
#include <cmath>

#include "config/resolve/channel_settings.h"
#include "core/error.h"
#include "core/text.h"
#include "model/registry.h"
#include "model/unet/unet3d.h"
#include "model/unet/unet3d_cost.h"
#include "model/vit/vit.h"
#include "model/vit/vit_cost.h"

namespace welkin::model {
namespace {

// Collects all problems before it throws.
class Problems {
 public:
  explicit Problems(const char* model) : model_(model) {}

  void require(bool holds, const std::string& what) {
    if (!holds) found_.push_back(what);
  }
  void finish() const {
    if (found_.empty()) return;
    throw ConfigError("model", cat("model=", model_, " cannot be built: ", join(found_, "; ")),
                      "Change these keys, or the data that decides channels and grid");
  }

 private:
  const char* model_;
  std::vector<std::string> found_;
};

void require_channels(Problems& problems, const ModelShape& shape) {
  problems.require(shape.in_channels > 0 && shape.out_channels > 0,
                   cat("channels must be positive: in_channels=", shape.in_channels, ", out_channels=", shape.out_channels));
}

// What is added to each output channel under `residual`: its earlier state, unless there is none or residual_except names it.
std::vector<VitOptions::ResidualRun> residual_runs(const config::ModelConfig& config, const ModelShape& shape) {
  if (!config.residual) return {};
  std::vector<int64_t> inputs = shape.earlier;
  for (auto c = static_cast<int64_t>(inputs.size()); c < shape.out_channels; ++c)
    inputs.push_back(shape.newest_input_channel + c);
  if (!config.residual_except.empty() && !shape.out_names.empty()) {
    const std::vector<bool> except = config::chosen_channels(config.residual_except, "residual_except", shape.out_names);
    for (size_t c = 0; c < except.size(); ++c) inputs[c] = except[c] ? -1 : inputs[c];
  }
  std::vector<VitOptions::ResidualRun> runs;
  for (const int64_t input : inputs) {
    const bool goes_on =
        !runs.empty() &&
        (input < 0 ? runs.back().input < 0 : runs.back().input >= 0 && input == runs.back().input + runs.back().channels);
    if (!goes_on) runs.push_back({.channels = 0, .input = input});
    ++runs.back().channels;
  }
  return runs;
}

VitOptions vit_options(const config::ModelConfig& config, const ModelShape& shape) {
  Problems problems("vit");
  require_channels(problems, shape);
  problems.require(shape.grid.size() == 2, cat("the grid must be (latitude, longitude): grid=[", join(shape.grid, ", "), "]"));
  problems.require(
      config.patch_size > 0 && config.embed_dim > 0 && config.num_heads > 0 && config.depth > 0 && config.mlp_ratio > 0,
      cat("sizes must be positive: patch_size=", config.patch_size, ", embed_dim=", config.embed_dim,
          ", num_heads=", config.num_heads, ", depth=", config.depth, ", mlp_ratio=", config.mlp_ratio));
  problems.finish();
  const int64_t mlp_width = std::llround(static_cast<double>(config.embed_dim) * config.mlp_ratio);
  problems.require(mlp_width >= 1, cat("the MLP's width, embed_dim times mlp_ratio, must round to at least 1: embed_dim=",
                                       config.embed_dim, ", mlp_ratio=", config.mlp_ratio));
  for (const int64_t extent : shape.grid) {
    problems.require(
        extent > 0 && extent % config.patch_size == 0,
        cat("the grid must be divisible by patches: grid=[", join(shape.grid, ", "), "], patch_size=", config.patch_size));
  }
  problems.require(config.embed_dim % config.num_heads == 0,
                   cat("heads must divide the width: embed_dim=", config.embed_dim, ", num_heads=", config.num_heads));
  problems.require(config.dropout >= 0.0 && config.dropout < 1.0, cat("a rate lies in [0, 1): dropout=", config.dropout));
  problems.require(
      !config.residual || !shape.earlier.empty() || shape.newest_input_channel + shape.out_channels <= shape.in_channels,
      cat("residual prediction needs every predicted channel in the newest input step: in_channels=", shape.in_channels,
          ", first of the newest step=", shape.newest_input_channel, ", out_channels=", shape.out_channels));
  problems.finish();
  const std::vector<VitOptions::ResidualRun> runs = residual_runs(config, shape);
  problems.require(!config.residual || std::ranges::any_of(runs, [](const auto& run) { return run.input >= 0; }),
                   cat("residual prediction needs a predicted channel that is an input too: residual=true, predicted=",
                       join(shape.out_names, " "), ", residual_except=[", join(config.residual_except, ", "), "]"));
  problems.finish();
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
  problems.require(!config.residual, "residual prediction is an option of the vit: residual=true");
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
  const config::LoopConfig& loop = config.loop;
  return vit_memory_cost(vit_options(config.model, shape),
                         {loop.activation_checkpointing.part, loop.activation_checkpointing_blocks});
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
  registry.add("unet3d", unet3d_entry());
}

}  // namespace welkin::model
