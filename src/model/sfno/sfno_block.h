// SPDX-License-Identifier: Apache-2.0
// A block of the SFNO (Bonev et al. 2023, "Spherical Fourier Neural Operators", arXiv:2306.03838), as in makani: a spectral
// convolution on the sphere, norm, GELU, MLP, norm, under drop-path, and a linear skip around all of it.
// Shapes: B batch, C channels, H x W grid, L degrees, M orders.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "model/base/forward_context.h"
#include "model/base/layer.h"
#include "model/layers/dropout.h"
#include "model/layers/instance_norm.h"
#include "model/layers/pointwise_conv.h"
#include "model/sfno/sfno_options.h"
#include "ops/sht/spherical_transform.h"

namespace welkin::model {

// The transforms from one grid to another with the same coefficients.
struct SphericalPair {
  std::shared_ptr<const ops::SphericalTransform> from, to;

  bool changes_grid() const { return from != to; }
};

// Mixes the channels of every coefficient by a complex matrix that depends on its degree alone, like a convolution with filters
// symmetric about an axis (Driscoll and Healy 1994). Runs in float32, also under autocast. Initial values: real and imaginary
// parts N(0, 1 / C); for degree 0, which is real, twice that variance.
class SpectralConv : public Layer {
 public:
  SpectralConv(std::string path, const SfnoOptions& options, std::shared_ptr<const ops::SphericalTransform> to);

  // (B, C, L, M, 2), real and imaginary parts -> the field (B, C', H, W).
  at::Tensor forward(const at::Tensor& coefficients_BCLM2) const;
  std::vector<Site*> own_sites() override { return {&whole_, &mix_, &synthesis_}; }
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override { stream << "SpectralConv"; }

  at::Tensor weight;  // (C, C', L, 2): real and imaginary parts

 private:
  Site whole_, mix_, synthesis_;
  std::shared_ptr<const ops::SphericalTransform> to_;
};

// The convolution under the name "filter", as in makani's module of that name.
class SpectralFilter : public Layer {
 public:
  SpectralFilter(std::string path, const SfnoOptions& options, SphericalPair transforms);

  struct Result {
    at::Tensor filtered, residual;  // the residual is the input on the grid of the result
  };
  Result forward(const at::Tensor& x_BCHW) const;
  std::vector<Site*> own_sites() override { return {&analysis_}; }
  void pretty_print(std::ostream& stream) const override { stream << "SpectralFilterLayer"; }

 private:
  SphericalPair transforms_;
  Site analysis_;
  std::shared_ptr<SpectralConv> filter_;
};

class SfnoBlock : public Layer {
 public:
  SfnoBlock(std::string path, const SfnoOptions& options, const SphericalPair& transforms, double drop_path);
  at::Tensor forward(const at::Tensor& x_BCHW, const ForwardContext& context) const;
  std::vector<Site*> sites() override;
  void pretty_print(std::ostream& stream) const override { stream << "NeuralOperatorBlock"; }

 private:
  at::Tensor transform(const at::Tensor& x_BCHW, const ForwardContext& context) const;

  Site whole_;
  std::shared_ptr<InstanceNorm> norm0_, norm1_;
  std::shared_ptr<SpectralFilter> filter_;
  std::shared_ptr<PointwiseConv> outer_skip_;
  std::shared_ptr<PointwiseMlp> mlp_;
  std::shared_ptr<DropPath> drop_path_;
};

}  // namespace welkin::model
