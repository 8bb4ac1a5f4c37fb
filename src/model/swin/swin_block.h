// SPDX-License-Identifier: Apache-2.0
// A block of the Swin transformer (Liu et al. 2021, arXiv:2103.14030) on the globe: attention within windows of patches, which
// every second block shifts by half a window. Windows wrap around the globe along longitude, and end at the poles. The bias of
// the logits is that of Pangu-Weather (Bi et al. 2022, arXiv:2211.02556): one table for every band of latitude. Shapes: B
// batch, N tokens of a grid of H x W, D width, A heads, E head width, T tokens of a window, P bands of windows from pole to pole,
// Q windows of a band.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/forward_context.h"
#include "model/base/layer.h"
#include "model/layers/dropout.h"
#include "model/layers/layer_norm.h"
#include "model/layers/linear.h"
#include "model/layers/mlp.h"
#include "model/swin/swin_options.h"
#include "ops/base/device_constant.h"

namespace welkin::model {

// The number of heads is read from tensors, so a layer that holds a part of them runs the same code.
class WindowAttention : public Layer {
 public:
  WindowAttention(std::string path, const SwinOptions& options, bool is_shifted);
  at::Tensor forward(const at::Tensor& x_BND, const ForwardContext& context) const;
  std::vector<Site*> sites() override;
  void initialise(uint64_t seed) override;
  void pretty_print(std::ostream& stream) const override { stream << "WindowAttention"; }

  at::Tensor earth_position_bias_table;  // (rows of a pair of tokens, P, A)

 private:
  at::Tensor attend(const at::Tensor& x_BND, const ForwardContext& context) const;
  at::Tensor windows_of(const at::Tensor& qkv_BNF) const;      // (3, B, P, Q, A, T, h)
  at::Tensor tokens_of(const at::Tensor& mixed_BPQATE) const;  // (B, N, D)
  Tensors weigh(const Tensors& qkv_and_bias) const;            // softmax(q k^T / sqrt(h) + bias) v, (B, P, Q, A, T, h)
  // Bias (P, 1, A, T, T) from a table of some heads, with the mask of shifted windows.
  at::Tensor bias_of(const at::Tensor& table) const;

  SwinOptions options_;
  int64_t head_dim_, shift_rows_, shift_columns_;
  Site whole_, in_, bias_, windows_, core_;
  std::shared_ptr<Linear> qkv_, proj_;
  std::shared_ptr<Dropout> proj_drop_;
  ops::DeviceConstant index_;  // (T T): row of the table for each pair of tokens
  ops::DeviceConstant mask_;   // (P, 1, 1, T, T): minus infinity between tokens of the two poles
};

class SwinBlock : public Layer {
 public:
  SwinBlock(std::string path, const SwinOptions& options, int64_t index);
  at::Tensor forward(const at::Tensor& x_BND, const ForwardContext& context) const;
  std::vector<Site*> own_sites() override { return {&whole_}; }
  void pretty_print(std::ostream& stream) const override { stream << "SwinTransformerBlock"; }

 private:
  at::Tensor transform(const at::Tensor& x_BND, const ForwardContext& context) const;

  Site whole_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
  std::shared_ptr<WindowAttention> attn_;
  std::shared_ptr<Mlp> mlp_;
  std::shared_ptr<DropPath> attn_path_, mlp_path_;
};

}  // namespace welkin::model
