// SPDX-License-Identifier: Apache-2.0
// Sums over the layers of model/unet/unet3d.cpp.
#include "model/unet/unet3d_cost.h"

#include <string>

#include "ops/convolution/conv3d_cost.h"

namespace welkin::model {
namespace {

constexpr int64_t kTaps = 64;

// A convolution between `fine` voxels on one side and an eighth of them on the other.
LayerCost conv_cost(std::string name, int64_t in_channels, int64_t out_channels, int64_t fine, bool halving,
                    bool of_input = false) {
  const int64_t coarse = fine / 8;
  const ops::OperatorCost cost =
      ops::conv3d_cost(in_channels, out_channels, kTaps, coarse, halving ? fine : coarse, halving ? coarse : fine, kFloatBytes);
  return layer_cost(std::move(name), cost, kTaps * in_channels * out_channels, out_channels, of_input);
}

int64_t conv_parameters(int64_t in_channels, int64_t out_channels) { return (kTaps * in_channels + 1) * out_channels; }

// All parameters except those of the last layer (parallel/plans/unet.cpp).
int64_t split_parameters(const Unet3dOptions& options) {
  int64_t split = 0;
  for (int64_t scale = 1; scale <= options.scales; ++scale) {
    split += conv_parameters(scale == 1 ? options.in_channels : options.channels(scale - 1), options.channels(scale));
    if (scale > 1) split += conv_parameters(options.up_in_channels(scale), options.channels(scale - 1));
  }
  return split;
}

}  // namespace

ModelCost unet3d_cost(const Unet3dOptions& options, const std::array<int64_t, 3>& edges) {
  const int64_t voxels = edges[0] * edges[1] * edges[2];
  const auto at_scale = [&](int64_t scale) { return voxels >> (3 * scale); };
  const auto named = [](const char* name, int64_t scale) { return name + std::to_string(scale); };
  ModelCost cost;
  for (int64_t scale = 1; scale <= options.scales; ++scale) {
    const int64_t in = scale == 1 ? options.in_channels : options.channels(scale - 1);
    cost.add(conv_cost(named("conv_down", scale), in, options.channels(scale), at_scale(scale - 1), /*halving=*/true,
                       /*of_input=*/scale == 1));
  }
  for (int64_t scale = options.scales; scale >= 2; --scale) {
    cost.add(conv_cost(named("conv_up", scale), options.up_in_channels(scale), options.channels(scale - 1), at_scale(scale - 1),
                       /*halving=*/false));
  }
  cost.add(conv_cost("conv_last", options.up_in_channels(1), options.out_channels, voxels, /*halving=*/false));
  return cost;
}

// Results of activations, which work in place; on a GPU also their concatenations with skips.
MemoryCost unet3d_memory_cost(const Unet3dOptions& options, const std::array<int64_t, 3>& edges) {
  const int64_t voxels = edges[0] * edges[1] * edges[2];
  const auto values = [&](int64_t channels, int64_t scale) { return static_cast<double>(channels * (voxels >> (3 * scale))); };
  double kept = values(options.out_channels, 0);
  for (int64_t scale = 1; scale <= options.scales; ++scale) kept += values(options.channels(scale), scale);
  double joined = 0;
  for (int64_t scale = 2; scale <= options.scales; ++scale) {
    kept += values(options.channels(scale - 1), scale - 1);
    joined += values(options.up_in_channels(scale - 1), scale - 1);
  }
  return {.kept = {.shared = kept, .joined = joined}, .split_parameters = split_parameters(options), .has_cast_weights = false};
}

}  // namespace welkin::model
