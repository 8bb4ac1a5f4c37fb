// SPDX-License-Identifier: Apache-2.0
// The input of column-split products where tokens are split over the same axis: gathered for the products, and let go after
// them. Only the own part stays for the backward pass, which gathers once more for the weights' gradients (Korthikanti et al.
// 2022, Reducing Activation Recomputation in Large Transformer Models, section 4.2.2): kept whole, the inputs of q, k, v and of
// the MLP would be what a rank of many holds most of.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <optional>

#include "parallel/collectives.h"

namespace welkin::parallel {

// Of one layer; its entrance and the products behind it share one. Used by the thread that runs the model.
class GatheredInput {
 public:
  GatheredInput(Group group, Lengths lengths);
  ~GatheredInput();
  GatheredInput(const GatheredInput&) = delete;
  GatheredInput& operator=(const GatheredInput&) = delete;

  // own (B, own tokens, D) -> (B, tokens of the group, D). Its gradient is this member's part of the sum over the members.
  at::Tensor enter(const at::Tensor& own);

  // x weight^T, weight (out, D), if x is what enter() gave last and a gradient will be asked for; else nothing. Casts as
  // at::linear does. The backward pass of every member must reach its products in the same order.
  std::optional<at::Tensor> product(const at::Tensor& x, const at::Tensor& weight);

 private:
  struct Source;
  struct Product;

  Group group_;
  Lengths lengths_;
  c10::intrusive_ptr<Source> source_;  // of the last forward pass, where a gradient will be asked for
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> gathered_{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>()};
};

}  // namespace welkin::parallel
