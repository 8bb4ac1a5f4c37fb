// SPDX-License-Identifier: Apache-2.0
#include "bench/step/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/text.h"

namespace welkin::bench {
namespace {

constexpr int64_t kAligned = 8;  // elements of half precision in a vector, and in a tensor core's operands
constexpr int64_t kTiled = 64;   // columns of a tile of a large matmul
constexpr int64_t kGpuRows = 256, kGpuColumns = 128;
constexpr double kWorthwhile = 1.2;

struct Width {
  std::string name;
  int64_t size = 0;
  std::string better{};  // the next size that fills vectors, if the model and not the data determines it
};

std::string percent(double share) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.0f %%", 100 * share);
  return text.data();
}

int64_t next_multiple(int64_t size, int64_t of) { return (size + of - 1) / of * of; }

// All heads are equally wide, so the next width fills the vectors of each.
std::string better_embed_dim(const config::ModelConfig& model) {
  const int64_t heads = std::max<int64_t>(1, model.num_heads);
  return cat("embed_dim=", heads * next_multiple(model.embed_dim / heads, kAligned), " fills them");
}

std::vector<Width> widths_of(const config::RunConfig& config) {
  const config::ModelConfig& model = config.model;
  if (model.model == "vit") {
    const auto hidden = std::llround(static_cast<double>(model.embed_dim) * model.mlp_ratio);
    return {{"embed_dim", model.embed_dim, better_embed_dim(model)},
            {"embed_dim / num_heads", model.embed_dim / std::max<int64_t>(1, model.num_heads), better_embed_dim(model)},
            {"mlp width", hidden},
            {"patch inputs", model.n_in_channels * model.patch_size * model.patch_size}};
  }
  if (model.model == "unet3d") {
    return {{"N_in_channels", model.N_in_channels},
            {"N_out_channels", model.N_out_channels},
            {"width", model.width, cat("width=", next_multiple(model.width, kAligned), " fills them")}};
  }
  return {};
}

std::string width_line(const Width& width) {
  if (width.size % kTiled == 0) return cat(width.name, "=", width.size, " is a multiple of 64");
  if (width.size % kAligned != 0) {
    return cat(width.name, "=", width.size, " is no multiple of 8: vectors are filled to ",
               percent(tile_efficiency(width.size, kAligned)), width.better.empty() ? "" : "; ", width.better);
  }
  return cat(width.name, "=", width.size, " is a multiple of 8, not of 64: tiles of 64 columns are filled to ",
             percent(tile_efficiency(width.size, kTiled)));
}

// Rows of the matmuls: tokens or voxels times samples.
std::string batch_line(const config::RunConfig& config, const AdviceFacts& facts) {
  const std::string batch = cat("a forward pass has ", facts.batch, facts.batch == 1 ? " sample" : " samples");
  if (config.model.model == "vit" && config.model.img_size.size() == 2) {
    const int64_t patch = std::max<int64_t>(1, config.model.patch_size);
    const int64_t rows = facts.batch * (config.model.img_size[0] / patch) * (config.model.img_size[1] / patch);
    const int64_t tile = facts.is_gpu ? kGpuRows : kTiled;
    return cat(batch, ", so matmuls have ", rows, " rows: tiles of ", tile, " are filled to ",
               percent(tile_efficiency(rows, tile)));
  }
  if (facts.batch % kAligned == 0) return cat(batch, ", a multiple of 8");
  if (!facts.is_gpu) return cat(batch, "; a CPU's kernels go over voxels, so it need not be a multiple of 8");
  return cat(batch, ", no multiple of 8: try ", next_multiple(facts.batch, kAligned));
}

std::string precision_line(const config::RunConfig& config, const AdviceFacts& facts) {
  const double gain = facts.bf16_flops / facts.fp32_flops;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", gain);
  const std::string measured = cat("bf16 matmuls are ", text.data(), " times as fast as fp32 here");
  const config::AmpMode mode = config.precision.amp_mode;
  if (mode == config::AmpMode::Fp16 && !facts.is_gpu) return cat(measured, "; fp16 has no fast matmuls on a CPU");
  if (mode == config::AmpMode::None && gain >= kWorthwhile) return cat(measured, ": --amp_mode bf16 is worth trying");
  if (mode == config::AmpMode::Bf16 && gain < kWorthwhile) return cat(measured, ": --amp_mode none loses little or nothing");
  return cat(measured, ": the present mode fits");
}

std::string format_line(const config::RunConfig& config, const AdviceFacts& facts) {
  if (!facts.is_gpu) return "memory format: our convolutions read channels-last boxes; there is no other to choose";
  if (config.backend.channels_last) return "memory format: channels last, which convolutions on tensor cores want";
  return "memory format: channels first; convolutions on tensor cores want channels last: --channels_last is worth trying";
}

// Ranks of one sample hold the same weights. The exchange is as long with shares of the optimizer's state as without.
std::string state_line(const config::ParallelConfig& parallel) {
  const std::string ranks = cat(parallel.spatial.size(), " ranks share the points of a sample");
  if (parallel.shard != config::ShardStage::None) return cat(ranks, ", and each updates its part of the weights");
  return cat(ranks, ", and each updates all weights: --shard optimizer is worth trying");
}

}  // namespace

double tile_efficiency(int64_t size, int64_t tile) {
  return size <= 0 ? 0 : static_cast<double>(size) / static_cast<double>(next_multiple(size, tile));
}

std::vector<std::string> advice(const config::RunConfig& config, const AdviceFacts& facts) {
  std::vector<std::string> lines{batch_line(config, facts)};
  for (const Width& width : widths_of(config)) lines.push_back(width_line(width));
  if (facts.is_gpu && config.model.model == "vit") {
    lines.push_back(cat("tiles of ", kGpuColumns, " columns are filled to ",
                        percent(tile_efficiency(config.model.embed_dim, kGpuColumns)), " by embed_dim"));
  }
  if (config.model.model == "unet3d") lines.push_back(format_line(config, facts));
  if (facts.fp32_flops > 0 && facts.bf16_flops > 0) lines.push_back(precision_line(config, facts));
  if (config.parallel.spatial.size() > 1) lines.push_back(state_line(config.parallel));
  if (!facts.is_gpu && facts.threads != facts.cores) {
    lines.push_back(cat("threads in use: ", facts.threads, " of ", facts.cores, " cores (--threads)"));
  }
  return lines;
}

}  // namespace welkin::bench
