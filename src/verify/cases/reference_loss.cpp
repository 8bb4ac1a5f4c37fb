// SPDX-License-Identifier: Apache-2.0
// Norms by aten's vector norm; the tutorials' rounded pi.
#include "verify/cases/reference_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>

namespace welkin::verify {
namespace {

at::Tensor sample_norms(const at::Tensor& values) { return at::linalg_vector_norm(values.flatten(1), 2, at::IntArrayRef{1}); }

}  // namespace

at::Tensor norm_ratio_loss(const at::Tensor& prediction, const at::Tensor& target) {
  return sample_norms(prediction.sub(target)).div(sample_norms(target)).mean();
}

at::Tensor tutorial_latitude_weights(int64_t rows) {
  at::Tensor weights = at::empty({rows}, at::kDouble);
  for (int64_t j = 0; j < rows; ++j) {
    const double latitude = 90 - 180 * static_cast<double>(j) / static_cast<double>(rows - 1);
    weights.data_ptr<double>()[j] = std::cos(3.1416 / 180 * latitude);
  }
  return weights.mul(static_cast<double>(rows)).div(weights.sum());
}

}  // namespace welkin::verify
