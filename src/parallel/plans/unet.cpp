// SPDX-License-Identifier: Apache-2.0
// How the 3-D U-Net is split over tp: by output channels. Each convolution needs all channels of its input, so what the members
// make is gathered behind every layer; the weights, 72 % of which stand in the four deepest layers, and all that belongs to them
// are divided.
#include <string>

#include "core/error.h"
#include "core/text.h"
#include "parallel/plans/plans.h"

namespace welkin::parallel {
namespace {

int64_t num_scales(const config::ModelConfig& config) {
  if (config.scales > 0) return config.scales;
  return config.full_scale ? 6 : 5;
}

// The first scale has the fewest channels; the others have multiples of them.
void check_channels(const config::ModelConfig& config, const Mesh& mesh) {
  const int64_t tp = mesh.size(Axis::Tp);
  if (config.width % tp == 0) return;
  throw ConfigError("parallel", cat("the channels cannot be split: width=", config.width, ", tp=", tp),
                    "Take a tensor_parallel that divides the width of the U-Net");
}

}  // namespace

Plan unet_plan_of(const config::ModelConfig& config, const model::ModelShape& /*shape*/, const Mesh& mesh,
                  const LayoutOptions& options) {
  if (options.sequence_parallel) {
    throw ConfigError("parallel", "the U-Net has no tokens to split: sequence_parallel=true", "Leave sequence_parallel away");
  }
  check_channels(config, mesh);
  Plan plan;
  for (int64_t scale = 1; scale <= num_scales(config); ++scale) {
    plan.rows.push_back({cat("conv_down", scale), GatheredChannels{Axis::Tp, /*weight_dim=*/0}});
    if (scale > 1) plan.rows.push_back({cat("conv_up", scale), GatheredChannels{Axis::Tp, /*weight_dim=*/1}});
  }
  return plan;
}

}  // namespace welkin::parallel
