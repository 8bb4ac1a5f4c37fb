// SPDX-License-Identifier: Apache-2.0
// Sums over the layers of model/unet/unet2d.cpp.
#include "model/unet/unet2d_cost.h"

#include <string>

#include "ops/gemm/linear_cost.h"

namespace welkin::model {
namespace {

constexpr int64_t kKernel = 9;  // points of a 3 x 3 kernel

int64_t points_at(const std::array<int64_t, 2>& grid, int64_t halvings) { return (grid[0] >> halvings) * (grid[1] >> halvings); }

// A convolution as a matmul; its input is counted once, not for every point of the kernel.
LayerCost conv2d_cost(std::string name, int64_t points, int64_t kernel, int64_t in, int64_t out, bool with_bias,
                      bool of_input = false) {
  ops::OperatorCost cost = ops::linear_cost(points, kernel * in, out, kFloatBytes);
  cost.bytes -= kFloatBytes * static_cast<double>(points * (kernel - 1) * in);
  return layer_cost(std::move(name), cost, kernel * in * out, with_bias ? out : 0, of_input);
}

void add_double_conv(ModelCost& cost, const std::string& path, int64_t points, int64_t in, int64_t out, bool of_input = false) {
  const auto norm = [&](const char* name) {
    return LayerCost{
        .name = path + name, .activation_bytes = 2 * kFloatBytes * static_cast<double>(points * out), .parameters = 2 * out};
  };
  cost.add(conv2d_cost(path + ".0", points, kKernel, in, out, /*with_bias=*/false, of_input));
  cost.add(norm(".1"));
  cost.add(conv2d_cost(path + ".3", points, kKernel, out, out, /*with_bias=*/false));
  cost.add(norm(".4"));
}

// Values kept by a pair of convolutions: their inputs, with the periodic columns; the norms' inputs; results of ReLU.
SavedValues kept_of_double_conv(const std::array<int64_t, 2>& grid, int64_t halvings, int64_t in, int64_t out) {
  const auto points = static_cast<double>(points_at(grid, halvings));
  const auto padded = static_cast<double>((grid[0] >> halvings) * ((grid[1] >> halvings) + 2));
  return {.stream = 4 * points * static_cast<double>(out), .shared = padded * static_cast<double>(in + out)};
}

}  // namespace

ModelCost unet2d_cost(const Unet2dOptions& options, const std::array<int64_t, 2>& grid) {
  ModelCost cost;
  add_double_conv(cost, "inc.double_conv", points_at(grid, 0), options.in_channels, options.channels(0), /*of_input=*/true);
  for (int64_t scale = 1; scale <= options.scales; ++scale) {
    add_double_conv(cost, "down" + std::to_string(scale) + ".maxpool_conv.1.double_conv", points_at(grid, scale),
                    options.channels(scale - 1), options.channels(scale));
  }
  for (int64_t scale = options.scales; scale >= 1; --scale) {
    const std::string path = "up" + std::to_string(options.scales - scale + 1);
    LayerCost up = conv2d_cost(path + ".up", points_at(grid, scale - 1), 1, options.channels(scale), options.channels(scale - 1),
                               /*with_bias=*/true);
    up.weights = 4 * options.channels(scale) * options.channels(scale - 1);
    up.parameters = up.weights + options.channels(scale - 1);
    const double coarse = static_cast<double>(points_at(grid, scale) * options.channels(scale));  // of its input
    up.activation_bytes -= kFloatBytes * (up.inputs - coarse);
    up.inputs = coarse;
    cost.add(up);
    add_double_conv(cost, path + ".conv.double_conv", points_at(grid, scale - 1), options.channels(scale),
                    options.channels(scale - 1));
  }
  cost.add(conv2d_cost("outc.conv", points_at(grid, 0), 1, options.width, options.out_channels, /*with_bias=*/true));
  return cost;
}

// Max pooling keeps 64-bit indices.
MemoryCost unet2d_memory_cost(const Unet2dOptions& options, const std::array<int64_t, 2>& grid) {
  const auto points = static_cast<double>(points_at(grid, 0));
  SavedValues kept = kept_of_double_conv(grid, 0, options.in_channels, options.channels(0));
  kept.ends = points * static_cast<double>(options.width + options.out_channels);
  for (int64_t scale = 1; scale <= options.scales; ++scale) {
    kept = kept + kept_of_double_conv(grid, scale, options.channels(scale - 1), options.channels(scale));
    kept = kept + kept_of_double_conv(grid, scale - 1, options.channels(scale), options.channels(scale - 1));
    kept.stream += 2 * static_cast<double>(points_at(grid, scale) * options.channels(scale - 1));
  }
  int64_t split = 0;  // all convolutions but the last (parallel/plans/unet.cpp)
  for (const LayerCost& layer : unet2d_cost(options, grid).layers) {
    if (layer.weights > 0 && layer.name != "outc.conv") split += layer.parameters;
  }
  return {.kept = kept, .split_parameters = split, .has_cast_weights = false};
}

}  // namespace welkin::model
