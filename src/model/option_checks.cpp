// SPDX-License-Identifier: Apache-2.0
#include "model/option_checks.h"

#include <algorithm>
#include <cmath>

#include "config/draft/channel_settings.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::model {
namespace {

std::vector<ResidualRun> residual_runs(const config::ModelConfig& config, const ModelShape& shape) {
  if (!config.residual) return {};
  std::vector<int64_t> inputs = shape.earlier;
  for (auto c = static_cast<int64_t>(inputs.size()); c < shape.out_channels; ++c)
    inputs.push_back(shape.newest_input_channel + c);
  if (!config.residual_except.empty() && !shape.out_names.empty()) {
    const std::vector<bool> except = config::chosen_channels(config.residual_except, "residual_except", shape.out_names);
    for (size_t c = 0; c < except.size(); ++c) inputs[c] = except[c] ? -1 : inputs[c];
  }
  std::vector<ResidualRun> runs;
  for (const int64_t input : inputs) {
    const bool goes_on =
        !runs.empty() &&
        (input < 0 ? runs.back().input < 0 : runs.back().input >= 0 && input == runs.back().input + runs.back().channels);
    if (!goes_on) runs.push_back({.channels = 0, .input = input});
    ++runs.back().channels;
  }
  return runs;
}

}  // namespace

void Problems::finish() const {
  if (found_.empty()) return;
  throw ConfigError("model", cat("model=", model_, " cannot be built: ", join(found_, "; ")),
                    "Change these keys, or the data that decides channels and grid");
}

void require_channels(Problems& problems, const ModelShape& shape) {
  problems.require(shape.in_channels > 0 && shape.out_channels > 0,
                   cat("channels must be positive: in_channels=", shape.in_channels, ", out_channels=", shape.out_channels));
}

void require_field(Problems& problems, const ModelShape& shape) {
  require_channels(problems, shape);
  problems.require(shape.grid.size() == 2, cat("the grid must be (latitude, longitude): grid=[", join(shape.grid, ", "), "]"));
}

void require_patch_sizes(Problems& problems, const config::ModelConfig& config, const char* parts_key, int64_t parts) {
  problems.require(config.patch_size > 0 && config.embed_dim > 0 && parts > 0 && config.depth > 0 && config.mlp_ratio > 0,
                   cat("sizes must be positive: patch_size=", config.patch_size, ", embed_dim=", config.embed_dim, ", ",
                       parts_key, "=", parts, ", depth=", config.depth, ", mlp_ratio=", config.mlp_ratio));
  problems.finish();
}

void require_heads(Problems& problems, const config::ModelConfig& config) {
  problems.require(config.embed_dim % config.num_heads == 0,
                   cat("heads must divide the width: embed_dim=", config.embed_dim, ", num_heads=", config.num_heads));
}

CheckpointedBlocks checkpointed_blocks(const config::RunConfig& config) {
  return {config.loop.activation_checkpointing.part, config.loop.activation_checkpointing_blocks};
}

void require_patches(Problems& problems, const config::ModelConfig& config, const ModelShape& shape) {
  for (const int64_t extent : shape.grid) {
    problems.require(
        extent > 0 && extent % config.patch_size == 0,
        cat("the grid must be divisible by patches: grid=[", join(shape.grid, ", "), "], patch_size=", config.patch_size));
  }
}

void require_dropout(Problems& problems, const config::ModelConfig& config) {
  problems.require(config.dropout >= 0.0 && config.dropout < 1.0, cat("a rate lies in [0, 1): dropout=", config.dropout));
}

int64_t checked_mlp_width(Problems& problems, const config::ModelConfig& config) {
  const int64_t mlp_width = std::llround(static_cast<double>(config.embed_dim) * config.mlp_ratio);
  problems.require(mlp_width >= 1, cat("the MLP's width, embed_dim times mlp_ratio, must round to at least 1: embed_dim=",
                                       config.embed_dim, ", mlp_ratio=", config.mlp_ratio));
  return mlp_width;
}

std::vector<ResidualRun> checked_residual(Problems& problems, const config::ModelConfig& config, const ModelShape& shape) {
  problems.require(
      !config.residual || !shape.earlier.empty() || shape.newest_input_channel + shape.out_channels <= shape.in_channels,
      cat("residual prediction needs every predicted channel in the newest input step: in_channels=", shape.in_channels,
          ", first of the newest step=", shape.newest_input_channel, ", out_channels=", shape.out_channels));
  problems.finish();
  std::vector<ResidualRun> runs = residual_runs(config, shape);
  problems.require(!config.residual || std::ranges::any_of(runs, [](const auto& run) { return run.input >= 0; }),
                   cat("residual prediction needs a predicted channel that is an input too: residual=true, predicted=",
                       join(shape.out_names, " "), ", residual_except=[", join(config.residual_except, ", "), "]"));
  problems.finish();
  return runs;
}

}  // namespace welkin::model
