// SPDX-License-Identifier: Apache-2.0
// A block of the AFNO (Guibas et al. 2022, "Adaptive Fourier Neural Operators", arXiv:2111.13587), in the form of FourCastNet
// (Pathak et al. 2022, arXiv:2202.11214): x += filter(norm1(x)); x += mlp(norm2(x)), the latter under drop-path.
// Shapes: B batch, N tokens of a grid of H x W, D width, K blocks of C channels, M wavenumbers along longitude.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/afno/afno_options.h"
#include "model/base/forward_context.h"
#include "model/base/layer.h"
#include "model/layers/dropout.h"
#include "model/layers/layer_norm.h"
#include "model/layers/mlp.h"

namespace welkin::model {

// The filter: a Fourier transform over the grid, a complex MLP within each block of channels, the same at every wavenumber,
// soft shrinkage, the inverse transform, and the input added. It runs in float32, also under autocast. The weights determine
// the blocks of channels on which it works. Initial values: N(0, 0.02^2), also for biases, as in FourCastNet.
class AfnoFilter : public Layer {
 public:
  AfnoFilter(std::string path, const AfnoOptions& options);

  // (B, N, K c) -> the same shape.
  at::Tensor forward(const at::Tensor& x_BND) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override { stream << "AFNO2D"; }

  at::Tensor w1, b1, w2, b2;  // (2, K, c, c) and (2, K, c): real parts, then imaginary ones

 private:
  // `in`: x (B, N, K c) and the weights of these K blocks, in the order of the members.
  at::Tensor mix(const Tensors& in) const;
  at::Tensor transform_blocks(const at::Tensor& spectrum_BHMD, const Tensors& in) const;

  Site whole_;
  int64_t rows_, columns_, kept_columns_;
  double threshold_;
};

class AfnoBlock : public Layer {
 public:
  AfnoBlock(std::string path, const AfnoOptions& options, double drop_path);
  at::Tensor forward(const at::Tensor& x_BND, const ForwardContext& context) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void pretty_print(std::ostream& stream) const override { stream << "Block"; }

 private:
  at::Tensor transform(const at::Tensor& x_BND, const ForwardContext& context) const;

  Site whole_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
  std::shared_ptr<AfnoFilter> filter_;
  std::shared_ptr<Mlp> mlp_;
  std::shared_ptr<DropPath> drop_path_;
};

}  // namespace welkin::model
