// SPDX-License-Identifier: Apache-2.0
#include "model/afno/afno_block.h"

#include <ATen/ops/baddbmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softshrink.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

#include <array>
#include <optional>

#include "model/base/init.h"
#include "ops/base/autocast.h"

namespace welkin::model {
namespace {

constexpr double kFilterDeviation = 0.02;
constexpr std::array<int64_t, 2> kGridDims{1, 2};  // of (B, H, W, C)
constexpr const char* kNorm = "ortho";

// A complex product as a real one: (re, im) times ((w_re, w_im), (-w_im, w_re)). w (2, K, in, out) ->
// (K, 2 in, 2 out).
at::Tensor real_form(const at::Tensor& w) {
  const at::Tensor re = w.select(0, 0), im = w.select(0, 1);
  return at::cat({at::cat({re, im}, -1), at::cat({im.neg(), re}, -1)}, -2);
}

// (2, K, out) -> (K, 1, 2 out)
at::Tensor real_bias(const at::Tensor& b) { return at::cat({b.select(0, 0), b.select(0, 1)}, -1).unsqueeze(1); }

}  // namespace

AfnoFilter::AfnoFilter(std::string path, const AfnoOptions& options)
    : Layer(std::move(path)),
      whole_(this->path()),
      rows_(options.rows()),
      columns_(options.columns()),
      kept_columns_(options.kept_columns()),
      threshold_(options.sparsity_threshold) {
  const int64_t blocks = options.num_blocks, channels = options.embed_dim / options.num_blocks;
  w1 = register_parameter("w1", at::empty({2, blocks, channels, channels}));
  b1 = register_parameter("b1", at::empty({2, blocks, channels}));
  w2 = register_parameter("w2", at::empty({2, blocks, channels, channels}));
  b2 = register_parameter("b2", at::empty({2, blocks, channels}));
}

at::Tensor AfnoFilter::forward(const at::Tensor& x_BND) const {
  return whole_({x_BND, w1, b1, w2, b2}, [this](const Tensors& in) { return Tensors{mix(in)}; }).at(0);
}

at::Tensor AfnoFilter::mix(const Tensors& in) const {
  const at::Tensor& x_BND = in.at(0);
  const ops::AutocastGuard in_float32(x_BND.device().type(), std::nullopt);
  const at::Tensor field_BHWD = x_BND.to(w1.scalar_type()).unflatten(1, {rows_, columns_});
  const at::Tensor spectrum_BHMD = at::fft_rfft2(field_BHWD, at::OptionalIntArrayRef(), kGridDims, kNorm);
  const at::Tensor mixed_BHMD = transform_blocks(spectrum_BHMD.narrow(2, 0, kept_columns_), in);
  const std::array<int64_t, 2> grid{rows_, columns_};  // wavenumbers that are not kept become zero
  return at::fft_irfft2(mixed_BHMD, grid, kGridDims, kNorm).flatten(1, 2).to(x_BND.scalar_type()).add(x_BND);
}

at::Tensor AfnoFilter::transform_blocks(const at::Tensor& spectrum_BHMD, const Tensors& in) const {
  const at::Tensor &first = in.at(1), &first_bias = in.at(2), &second = in.at(3), &second_bias = in.at(4);
  const int64_t batch = spectrum_BHMD.size(0), blocks = first.size(1), channels = first.size(2);
  const at::Tensor parts_BHMKC2 = at::view_as_real(spectrum_BHMD).unflatten(3, {blocks, channels});
  const at::Tensor rows_KR2C = parts_BHMKC2.permute({3, 0, 1, 2, 5, 4}).reshape({blocks, -1, 2 * channels});
  const at::Tensor hidden_KR2C = at::relu(at::baddbmm(real_bias(first_bias), rows_KR2C, real_form(first)));
  const at::Tensor mixed_KR2C = at::softshrink(at::baddbmm(real_bias(second_bias), hidden_KR2C, real_form(second)), threshold_);
  const at::Tensor mixed_KBHM2C = mixed_KR2C.view({blocks, batch, rows_, kept_columns_, 2, channels});
  return at::view_as_complex(mixed_KBHM2C.permute({1, 2, 3, 0, 5, 4}).contiguous()).flatten(3);
}

void AfnoFilter::initialise(uint64_t seed) {
  for (auto& parameter : named_parameters(/*recurse=*/false)) {
    fill_normal(*parameter, seed, path_of(parameter.key()), kFilterDeviation);
  }
}

AfnoBlock::AfnoBlock(std::string path, const AfnoOptions& options, double drop_path)
    : Layer(std::move(path)), whole_(this->path()) {
  norm1_ = add<LayerNorm>("norm1", options.embed_dim);
  filter_ = add<AfnoFilter>("filter", options);
  norm2_ = add<LayerNorm>("norm2", options.embed_dim);
  mlp_ = add<Mlp>("mlp", MlpOptions{.width = options.embed_dim, .hidden = options.mlp_width, .dropout = options.dropout});
  drop_path_ = add<DropPath>("drop_path", drop_path);
}

at::Tensor AfnoBlock::forward(const at::Tensor& x_BND, const ForwardContext& context) const {
  return whole_({x_BND}, [this, context](Tensors in) { return Tensors{transform(in.at(0), context)}; }).at(0);
}

at::Tensor AfnoBlock::transform(const at::Tensor& x_BND, const ForwardContext& context) const {
  const ops::ResidualNorm middle_BND = norm2_->of_sum(x_BND, filter_->forward(norm1_->forward(x_BND)));
  return middle_BND.sum.add(drop_path_->forward(mlp_->forward(middle_BND.normed, context), context));
}

}  // namespace welkin::model
