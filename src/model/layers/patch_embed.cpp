// SPDX-License-Identifier: Apache-2.0
// Cuts fields into patches and puts patches together again.
#include "model/layers/patch_embed.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <ostream>

#include "model/base/init.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::model {

PatchProjection::PatchProjection(std::string path, int64_t in_channels, int64_t width, int64_t patch) : Layer(std::move(path)) {
  weight = register_parameter("weight", at::empty({width, in_channels, patch, patch}));
  bias = register_parameter("bias", at::empty({width}));
}

// A convolution whose stride equals its kernel, as a matmul: tokens come out in rows. A convolution would leave them in
// columns, which slows every operator behind it.
at::Tensor PatchProjection::forward(const at::Tensor& x_BCHW) const {
  const int64_t patch = weight.size(2);
  const int64_t rows = x_BCHW.size(2) / patch;
  const int64_t columns = x_BCHW.size(3) / patch;
  const at::Tensor patches_BNF = x_BCHW.narrow(2, 0, rows * patch)
                                     .narrow(3, 0, columns * patch)
                                     .unflatten(2, {rows, patch})
                                     .unflatten(4, {columns, patch})
                                     .permute({0, 2, 4, 1, 3, 5})
                                     .reshape({x_BCHW.size(0), rows * columns, x_BCHW.size(1) * patch * patch});
  return ops::linear(patches_BNF, weight.flatten(1), bias);
}

void PatchProjection::initialise(uint64_t seed) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(weight.numel() / weight.size(0)));
  fill_uniform(weight, seed, path_of("weight"), bound);
  fill_uniform(bias, seed, path_of("bias"), bound);
}

void PatchProjection::pretty_print(std::ostream& stream) const {
  const int64_t patch = weight.size(2);
  stream << "Conv2d(" << weight.size(1) << ", " << weight.size(0) << ", kernel_size=(" << patch << ", " << patch << "), stride=("
         << patch << ", " << patch << "))";
}

PatchEmbed::PatchEmbed(std::string path, int64_t in_channels, int64_t width, int64_t patch)
    : Layer(std::move(path)), whole_(this->path()), proj_(add<PatchProjection>("proj", in_channels, width, patch)) {}

at::Tensor PatchEmbed::forward(const at::Tensor& x_BCHW) const {
  return whole_({x_BCHW}, [this](Tensors in) { return Tensors{proj_->forward(in.at(0))}; }).at(0);
}

at::Tensor unpatchify(const at::Tensor& patches_BNF, int64_t grid_height, int64_t patch) {
  const int64_t batch = patches_BNF.size(0);
  const int64_t grid_width = patches_BNF.size(1) / grid_height;
  const int64_t channels = patches_BNF.size(2) / (patch * patch);
  return patches_BNF.reshape({batch, grid_height, grid_width, patch, patch, channels})
      .permute({0, 5, 1, 3, 2, 4})
      .reshape({batch, channels, grid_height * patch, grid_width * patch});
}

}  // namespace welkin::model
