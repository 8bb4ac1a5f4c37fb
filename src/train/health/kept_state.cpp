// SPDX-License-Identifier: Apache-2.0
#include "train/health/kept_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include "core/error.h"

namespace welkin::train {
namespace {

void append_values(std::vector<at::Tensor>& tensors, const std::vector<NamedState>& states) {
  for (const NamedState& state : states) tensors.push_back(state.value);
}

// All tensors of the state in a fixed order. If weights are shared out: this rank's pieces.
std::vector<at::Tensor> tensors_of(TrainSetup& setup) {
  std::vector<at::Tensor> tensors;
  for (const parallel::ParamRow& row : setup.table.rows()) tensors.push_back(row.trained().detach());
  for (const at::Tensor& buffer : setup.model->buffers()) tensors.push_back(buffer);
  append_values(tensors, setup.optimizer->states());
  append_values(tensors, setup.scaler->states());
  if (setup.weight_average) append_values(tensors, setup.weight_average->states());
  return tensors;
}

}  // namespace

void KeptState::keep(TrainSetup& setup, int64_t step) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> tensors = tensors_of(setup);
  if (copies_.empty()) {
    for (const at::Tensor& tensor : tensors) copies_.push_back(at::empty_like(tensor, at::TensorOptions(at::kCPU)));
  }
  WELKIN_CHECK(copies_.size() == tensors.size(), "the state of a run has as many tensors as before");
  for (size_t i = 0; i < tensors.size(); ++i) copies_[i].copy_(tensors[i]);
  step_ = step;
}

int64_t KeptState::restore(TrainSetup& setup) const {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> tensors = tensors_of(setup);
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_(copies_[i]);
  setup.data_parallel->after_update();
  setup.data_parallel->complete_weights();
  return step_;
}

}  // namespace welkin::train
