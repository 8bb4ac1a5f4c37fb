// SPDX-License-Identifier: Apache-2.0
// The U-Net (Ronneberger et al. 2015, arXiv:1505.04597) on fields of the globe: per scale two convolutions, periodic along
// longitude, each with instance norm and ReLU; max pooling down and transposed convolutions up. Parameters have the names of
// milesial/Pytorch-UNet, the most widely used one. Instance norms replace its batch norms, so that a sample does not depend on
// its batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "model/base/model.h"
#include "model/layers/instance_norm.h"
#include "model/layers/periodic_conv.h"
#include "model/layers/pointwise_conv.h"
#include "model/unet/unet2d_options.h"

namespace welkin::model {

// "double_conv": convolution, norm, ReLU, twice.
class DoubleConv : public Layer {
 public:
  DoubleConv(std::string path, int64_t in_channels, int64_t out_channels);
  at::Tensor forward(const at::Tensor& x_BCHW) const;
  void pretty_print(std::ostream& stream) const override { stream << "DoubleConv"; }

 private:
  std::shared_ptr<PeriodicConv> conv0_, conv3_;
  std::shared_ptr<InstanceNorm> norm1_, norm4_;
};

class Unet2d : public Model {
 public:
  explicit Unet2d(const Unet2dOptions& options);

  // (B, in_channels, H, W) -> (B, out_channels, H, W); both edges divide by 2^scales. With `residual`, the newest input step is
  // added.
  at::Tensor forward(const at::Tensor& input, const ForwardContext& context) override;
  std::vector<Site*> sites() override;
  // One segment per scale down and up; skip connections are passed along.
  std::vector<Segment> segments() override;
  void pretty_print(std::ostream& stream) const override { stream << "UNet"; }

 private:
  struct Scale {
    std::shared_ptr<DoubleConv> conv;
    std::shared_ptr<HalvingPool> pool;  // on the way down only, but not in the first scale
    std::shared_ptr<DoublingConv> up;   // on the way up only
    std::unique_ptr<Site> site;         // "levels.N", in the order of the forward pass
  };
  at::Tensor run(const Scale& scale, Tensors in) const;
  at::Tensor output_of(const at::Tensor& x_BCHW, const at::Tensor& input) const;

  Unet2dOptions options_;
  std::vector<Scale> down_, up_;
  std::shared_ptr<PointwiseConv> last_;
};

}  // namespace welkin::model
