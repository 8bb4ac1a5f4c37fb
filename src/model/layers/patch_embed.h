// SPDX-License-Identifier: Apache-2.0
// From fields to tokens and back: the strided convolution that cuts patches, and the reordering that joins patches.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/layer.h"

namespace welkin::model {

// Only the convolution, so that its parameters carry the name "proj". Initial values: PyTorch's default for a Conv2d, weight
// and bias uniform in +-1/sqrt(fan_in).
class PatchProjection : public Layer {
 public:
  PatchProjection(std::string path, int64_t in_channels, int64_t width, int64_t patch);
  at::Tensor forward(const at::Tensor& x_BCHW) const;
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override;

  at::Tensor weight;  // (width, in_channels, patch, patch)
  at::Tensor bias;    // (width)
};

// (B, C, H, W) -> (B, N, width), N = (H / patch) (W / patch), tokens row-major over the grid.
class PatchEmbed : public Layer {
 public:
  PatchEmbed(std::string path, int64_t in_channels, int64_t width, int64_t patch);
  at::Tensor forward(const at::Tensor& x_BCHW) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void pretty_print(std::ostream& stream) const override { stream << "PatchEmbed"; }

 private:
  Site whole_;
  std::shared_ptr<PatchProjection> proj_;
};

// (B, N, patch * patch * C), feature (row * patch + col) * C + c, on a grid of `grid_height` rows -> (B, C, H, W).
at::Tensor unpatchify(const at::Tensor& patches_BNF, int64_t grid_height, int64_t patch);

}  // namespace welkin::model
