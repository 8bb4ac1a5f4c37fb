// SPDX-License-Identifier: Apache-2.0
// Computes a micro-batch's gradients twice: an occasional error of a processor or its memory shows as two results from the same
// numbers.
#include <ATen/ops/equal.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "ops/base/autocast.h"
#include "train/learn/precision.h"
#include "train/step/model_setup.h"
#include "train/step/step.h"

namespace welkin::train {
namespace {

// NaN equals itself.
bool same_bits(const at::Tensor& one, const at::Tensor& other) {
  const at::ScalarType whole = one.element_size() == 8 ? at::kLong : one.element_size() == 4 ? at::kInt : at::kShort;
  return at::equal(one.view(whole), other.view(whole));
}

}  // namespace

// The count of steps is on the device: only a run that rechecks waits for it.
bool EagerStep::is_rechecked() const {
  const int64_t interval = config_.health.recheck_interval;
  return interval > 0 && (setup_.counter.item<int64_t>() + 1) % interval == 0;
}

// The gradients stay outside of .grad, which the exchange watches.
std::vector<at::Tensor> EagerStep::own_gradients(const data::Batch& batch) {
  const ops::AutocastGuard autocast(options_.device.type(), autocast_dtype(config_.precision.amp_mode));
  at::Tensor loss = losses_of(batch).sum() / samples_of(batch);
  const at::Tensor scaled = scaled_loss(loss);
  std::vector<at::Tensor> weights;
  for (const parallel::ParamRow& row : setup_.table.rows()) {
    if (row.local.requires_grad()) weights.push_back(row.local);
  }
  return torch::autograd::grad({scaled}, weights, {}, /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
}

// The other ranks learn of an error when this rank stops.
void EagerStep::recheck(const data::Batch& batch) {
  if (batch.input.size(0) == 0) return;
  const std::vector<at::Tensor> once = own_gradients(batch), again = own_gradients(batch);
  size_t number = 0;
  for (const parallel::ParamRow& row : setup_.table.rows()) {
    if (!row.local.requires_grad()) continue;
    const at::Tensor &first = once[number], &second = again[number];
    ++number;
    if (first.defined() != second.defined() || (first.defined() && !same_bits(first, second))) {
      throw Error(ExitCode::Defective, "train",
                  cat("this rank computes two gradients from the same numbers: host=", host_name(), ", parameter=", row.name,
                      ", epoch step=", batch.step),
                  "Take this host out of the job and have it tested; --resume continues from the newest checkpoint elsewhere");
    }
  }
}

}  // namespace welkin::train
