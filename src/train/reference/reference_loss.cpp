// SPDX-License-Identifier: Apache-2.0
// Norms by aten's vector norm.
#include "train/reference/reference_loss.h"

#include <ATen/ops/linalg_vector_norm.h>

namespace welkin::train::reference {
namespace {

at::Tensor sample_norms(const at::Tensor& values) { return at::linalg_vector_norm(values.flatten(1), 2, at::IntArrayRef{1}); }

}  // namespace

at::Tensor norm_ratio_loss(const at::Tensor& prediction, const at::Tensor& target) {
  return sample_norms(prediction.sub(target)).div(sample_norms(target)).mean();
}

}  // namespace welkin::train::reference
