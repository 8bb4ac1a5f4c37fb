// SPDX-License-Identifier: Apache-2.0
// A block of the vision transformer: x += attention(norm1(x)); x += mlp(norm2(x)), each branch under drop-path.
// Shapes: B batch, N tokens, D width, H heads. Heads and widths are read from tensors, so a layer with a part of the heads
// or of the hidden width runs the same code.
#pragma once

#include <ATen/core/Tensor.h>

#include "config/schema/choices.h"
#include "model/base/forward_context.h"
#include "model/base/layer.h"
#include "model/layers/dropout.h"
#include "model/layers/layer_norm.h"
#include "model/layers/linear.h"
#include "model/layers/mlp.h"

namespace welkin::model {

// Joint: one matrix "qkv" with the rows of q for all heads, then k, then v; attn precedes the norms in files (SC23). Separate:
// three matrices "q", "k", "v"; the norms come first (DL4SCI25).
using config::QkvLayout;

struct VitBlockOptions {
  int64_t width = 384;
  int64_t num_heads = 8;
  int64_t mlp_width = 1536;
  QkvLayout qkv = QkvLayout::Separate;
  double dropout = 0.0;
  double drop_path = 0.0;
};

class Attention : public Layer {
 public:
  Attention(std::string path, const VitBlockOptions& options);
  at::Tensor forward(const at::Tensor& x_BND, const ForwardContext& context) const;
  std::vector<Site*> sites() override;
  void pretty_print(std::ostream& stream) const override { stream << "Attention"; }

 private:
  at::Tensor attend(const at::Tensor& x_BND, const ForwardContext& context) const;
  Tensors project(const at::Tensor& x_BND) const;         // q, k, v, each (B, N, D)
  at::Tensor split_heads(const at::Tensor& x_BND) const;  // (B, H, N, head_dim)
  Tensors weigh(const Tensors& qkv, const ForwardContext& context) const;

  int64_t head_dim_;
  Site whole_, in_, core_;
  std::shared_ptr<Linear> qkv_, q_, k_, v_;  // either the first or the other three
  std::shared_ptr<Linear> proj_;
  std::shared_ptr<Dropout> weights_drop_, proj_drop_;
};

class VitBlock : public Layer {
 public:
  VitBlock(std::string path, const VitBlockOptions& options);
  at::Tensor forward(const at::Tensor& x_BND, const ForwardContext& context) const;
  std::vector<Site*> sites() override;
  void pretty_print(std::ostream& stream) const override { stream << "VitBlock"; }

 private:
  at::Tensor transform(const at::Tensor& x_BND, const ForwardContext& context) const;

  Site whole_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<Mlp> mlp_;
  std::shared_ptr<DropPath> attn_path_, mlp_path_;
};

}  // namespace welkin::model
