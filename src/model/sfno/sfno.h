// SPDX-License-Identifier: Apache-2.0
// The spherical Fourier neural operator on fields of the globe: an encoder of every point, blocks (sfno_block.h), a decoder,
// and a linear skip from the input. The first block goes to a coarser Gaussian grid, the last comes back. Parameters have the
// names of makani's SphericalFourierNeuralOperatorNet; complex weights are stored as pairs of real numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/model.h"
#include "model/sfno/sfno_block.h"
#include "model/sfno/sfno_options.h"

namespace welkin::model {

class Sfno : public Model {
 public:
  explicit Sfno(const SfnoOptions& options);

  // (B, in_channels, height, width) -> (B, out_channels, height, width). With `residual`, the newest input step is added.
  at::Tensor forward(const at::Tensor& input, const ForwardContext& context) override;
  std::vector<Site*> sites() override;
  std::vector<Segment> segments() override;  // one per block; the first encodes, the last makes the output
  void pretty_print(std::ostream& stream) const override { stream << "SphericalFourierNeuralOperatorNet"; }

 private:
  at::Tensor output_of(const at::Tensor& x_BCHW, const at::Tensor& input) const;

  SfnoOptions options_;
  std::shared_ptr<PointwiseMlp> encoder_, decoder_;
  std::shared_ptr<LayerList<SfnoBlock>> blocks_;
  std::shared_ptr<PointwiseConv> residual_transform_;
};

}  // namespace welkin::model
