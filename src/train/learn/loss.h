// SPDX-License-Identifier: Apache-2.0
// A loss as per-sample partial sums plus a finish, so that any group which shares a sample can add its sums in between. The
// loss of a batch is the mean of its samples' losses; the trainer weighs micro-batches by their samples.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "config/schema/run_config.h"

namespace welkin::train {

class Loss {
 public:
  virtual ~Loss() = default;

  // prediction, target (B, C, spatial...) of any floating dtype -> (B, K), sums over the elements at hand, in float32 or wider.
  // Values that a finish divides by are columns too (element counts), so that sums over a group stay right.
  virtual at::Tensor partial(const at::Tensor& prediction, const at::Tensor& target) const = 0;

  // The same with weights per element. `weight` >= 0 is broadcastable to the prediction; where it is 0, prediction and target
  // are 0. Columns that count elements add up their weights. Only for a loss that takes_weights(): with any other a run is
  // refused if its data have points without a value, or its channels or rows have weights (weighted_loss.h).
  virtual at::Tensor weighted_partial(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weight) const;
  virtual bool takes_weights() const { return false; }

  // partial() of a part of a field that begins at this row of the sample.
  virtual at::Tensor partial_from(int64_t /*row*/, const at::Tensor& prediction, const at::Tensor& target) const {
    return partial(prediction, target);
  }

  // (B, K) complete sums -> (B) losses. Differentiable.
  virtual at::Tensor finish(const at::Tensor& sums) const = 0;

  // (B) losses of whole samples.
  at::Tensor per_sample(const at::Tensor& prediction, const at::Tensor& target) const {
    return finish(partial(prediction, target));
  }
};

using LossPtr = std::unique_ptr<const Loss>;
using LossFactory = std::function<LossPtr(const config::RunConfig&)>;

// ||prediction - target||_2 / ||target||_2 of the flattened sample: all channels and points together, no epsilon, no weights.
LossPtr relative_l2();

// mean|g - t| + lambda * mean|exp(14 g_0) - exp(14 t_0)|, index 0 the first channel (gas density is stored as log(rho) / 14).
// lambda = 0 leaves the second term out, since exp may overflow.
LossPtr l1_rho(double lambda);

// Mean square error, mean absolute error: over all channels and points.
LossPtr mean_square();
LossPtr mean_absolute();

// The mean over elements of e^2 / 2 for an error e of at most delta, and of delta (|e| - delta / 2) for a larger one (P. J.
// Huber, Ann. Math. Statist. 35 (1964) 73).
LossPtr huber(double delta);

// The dtype in which losses and metrics accumulate: float32, or float64 for float64 input.
at::Tensor widen(const at::Tensor& values);

}  // namespace welkin::train
