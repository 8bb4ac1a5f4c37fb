// SPDX-License-Identifier: Apache-2.0
// The 3-D U-Net of the N-body tutorials: halving convolutions with LeakyReLU down, doubling ones with ReLU up, skips by
// concatenation (upward path first; not stored, as the convolution reads both), tanh at the end. No norms, no dropout.
// Level k, at the site "levels.k", is everything below scale k - 1: its halving, level k + 1, its doubling. Level 1 would be
// the model.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/model.h"
#include "model/layers/conv3d.h"
#include "model/unet/unet3d_options.h"

namespace welkin::model {

// Halving and LeakyReLU(0.01); the convolution carries the name "0", as in the tutorials' files.
class DownBlock : public Layer {
 public:
  DownBlock(std::string path, int64_t in_channels, int64_t out_channels, const ConvInit& initial);
  at::Tensor forward(const at::Tensor& x_BCDHW) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void pretty_print(std::ostream& stream) const override { stream << "DownBlock"; }

 private:
  Site whole_;
  std::shared_ptr<StridedConv3d> conv_;
};

// Doubling and ReLU of one tensor, or of two whose channels are concatenated.
class UpBlock : public Layer {
 public:
  UpBlock(std::string path, int64_t in_channels, int64_t out_channels, const ConvInit& initial);
  at::Tensor forward(const Tensors& x_BCDHW) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void pretty_print(std::ostream& stream) const override { stream << "UpBlock"; }

 private:
  Site whole_;
  std::shared_ptr<TransposedConv3d> conv_;
};

class Unet3d : public Model {
 public:
  explicit Unet3d(const Unet3dOptions& options);

  // (B, in_channels, s, s, s) -> (B, out_channels, s, s, s) in (-1, 1).
  at::Tensor forward(const at::Tensor& input, const ForwardContext& context) override;
  std::vector<Site*> sites() override;
  // One segment per halving and per doubling; skip connections are passed along. No segment is a whole level.
  std::vector<Segment> segments() override;
  void pretty_print(std::ostream& stream) const override { stream << "Unet3d"; }

 private:
  at::Tensor output_of(const Tensors& x_BCDHW) const;
  at::Tensor level(int64_t scale, const at::Tensor& x_BCDHW) const;  // scale >= 2; the result has the edges of x

  std::vector<std::shared_ptr<DownBlock>> down_;  // scale 1 first
  std::vector<std::shared_ptr<UpBlock>> up_;      // deepest first
  std::vector<Site> levels_;                      // "levels.2" first
  Site last_site_;                                // "conv_last", before tanh
  std::shared_ptr<TransposedConv3d> last_;
};

}  // namespace welkin::model
