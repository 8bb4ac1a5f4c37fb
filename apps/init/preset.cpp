// SPDX-License-Identifier: Apache-2.0
#include "apps/init/preset.h"

#include <algorithm>
#include <array>

#include "core/printable.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

// Names come from files: a line break in one would end the YAML comment.
std::string comment_of(size_t index, const std::string& name, const std::string& unit) {
  return cat("#   ", index, " ", printable(name), unit.empty() ? "" : cat(" [", printable(unit), "]"), "\n");
}

std::string heading(const std::string& what, const std::vector<std::string>& commands) {
  std::string text =
      cat("# ", what, " Written by welkin init: change what you like.\n# Every key: docs/reference/keys.md. Next:\n");
  for (const std::string& command : commands) text += cat("#   ", command, "\n");
  return text;
}

// Numbers of channels where all channels are prognostic; else the roles, from which they follow.
std::string channel_lines(const ForecastFacts& facts) {
  if (facts.roles.empty()) {
    return cat("  n_in_channels: ", facts.channels.size(), "\n  n_out_channels: ", facts.channels.size(),
               "   # the first ones are predicted\n");
  }
  return "  n_in_channels: 0   # by the roles of the channels\n  n_out_channels: 0\n"
         "  # roles: [NAME=forcing]   # over those of the files: prognostic, forcing, diagnostic, static\n";
}

std::string batch_line(const TrainingSize& size) {
  return cat("  global_batch_size: ", size.batch, "   # samples of a step; the planner's estimate: ", size.memory, " of memory, ",
             size.samples, " samples an epoch\n");
}

}  // namespace

std::string forecast_preset(const ForecastFacts& facts, const TrainingSize& size, const std::vector<std::string>& commands) {
  std::string text = heading(cat("A forecast on ", facts.height, " x ", facts.width, " points."), commands);
  text += "# Channels, in the order of the files:\n";
  for (size_t i = 0; i < facts.channels.size(); ++i) {
    const std::string unit = facts.units.empty() ? "" : facts.units[i];
    text += comment_of(i, facts.channels[i] + (facts.roles.empty() ? "" : cat(" (", facts.roles[i], ")")), unit);
  }
  for (const std::string& name : facts.statics) text += cat("#   ", printable(name), " (static)\n");
  const int64_t rows = facts.height / facts.patch, columns = facts.width / facts.patch;
  text += cat("base:\n  model: vit\n  img_size: [", facts.height, ", ", facts.width,
              "]   # rows from the north, columns eastward\n", "  patch_size: ", facts.patch, "   # divides both: ", rows, " x ",
              columns, " tokens\n", "  embed_dim: 128   # width of a token\n  depth: 4   # transformer blocks\n  num_heads: 4\n",
              "  dropout: 0.1   # few data over-fit\n", channel_lines(facts),
              "  residual: true   # predict the change instead of the state\n", "  dt: 1   # lead of the forecast, in steps of ",
              facts.step, "\n", "  # history: 2   # input steps, newest last\n",
              "  # forcing: [solar, calendar, coordinates]   # input channels computed from time and place\n");
  text += cat("  train_data_path: /data/train\n  valid_data_path: /data/valid\n",
              facts.has_test ? "  inf_data_path: /data/test\n" : "",
              "  global_means_path: /data/stats/global_means.npy\n  global_stds_path: /data/stats/global_stds.npy\n",
              "  time_means_path: /data/stats/time_means.npy\n  num_data_workers: 2   # reading threads\n");
  text += cat(batch_line(size), "  num_iters: ", size.steps, "   # steps of the run\n",
              "  optimizer: AdamW\n  weight_decay: 0.1\n  lr: 5E-4\n  lr_schedule: cosine\n  warmup: ",
              std::max<int64_t>(1, size.steps / 20), "   # steps\n  expdir: /logs\n");
  return text;
}

std::string box_preset(const BoxFacts& facts, const TrainingSize& size, const std::vector<std::string>& commands) {
  std::string text = heading("A 3D U-Net from boxes to boxes.", commands);
  text += "# Input channels (Nbody):\n";
  for (size_t i = 0; i < facts.input.size(); ++i) text += comment_of(i, facts.input[i], "");
  text += "# Target channels (Hydro):\n";
  for (size_t i = 0; i < facts.target.size(); ++i) text += comment_of(i, facts.target[i], "");
  text += cat("base:\n  model: unet3d\n  scales: ", facts.scales, "   # the crop is divisible by 2^scales\n",
              "  width: 16   # channels after the first convolution\n", "  N_in_channels: ", facts.input.size(),
              "\n  N_out_channels: ", facts.target.size(), "\n");
  if (!facts.vector_channels.empty())
    text += cat("  vector_channels_in: [", join(facts.vector_channels, ", "), "]   # turned with the box\n");
  text += cat("  weight_init: {conv_init: 'normal', conv_scale: 0.02, conv_bias: 0.}\n", "  box_size: [", facts.train_edge, ", ",
              facts.valid_edge, "]   # longest edges of the training and the validation box\n", "  data_size: ", facts.crop,
              "   # edge of a crop\n", "  augment: rotations   # none where the axes differ in kind (height and place)\n",
              "  Nsamples: ", size.samples, "   # crops of an epoch\n  Nsamples_val: ", std::max<int64_t>(1, size.samples / 16),
              "\n", "  train_path: /data/train.h5\n  val_path: /data/valid.h5\n  num_data_workers: 2   # reading threads\n");
  text += cat(batch_line(size), "  base_batch_size: ", size.batch, "\n  num_epochs: 10\n",
              "  lr_schedule: {scaling: none, start_lr: 2.E-3, end_lr: 0., warmup_steps: 0}\n  lambda_rho: 0\n  expdir: /logs\n");
  return text;
}

}  // namespace welkin::apps
