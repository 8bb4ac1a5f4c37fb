// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/model_step.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <span>

namespace welkin::train {
namespace {

// A number that no other member of any start has.
std::vector<int64_t> sample_numbers(const MemberKeys& keys) {
  std::vector<int64_t> numbers;
  for (const int64_t member : keys.members) numbers.push_back((keys.start_seconds << 20) + member);
  return numbers;
}

}  // namespace

at::Tensor predict_step(const TrainedModel& model, const data::FieldStates& fields, const at::Tensor& states,
                        int64_t valid_seconds, const MemberKeys& keys) {
  at::Tensor input = states;
  if (const int64_t computed = fields.num_computed(); computed > 0) {
    at::Tensor channels = at::empty({1, computed, states.size(2), states.size(3)}, at::kFloat);
    fields.fill_computed(valid_seconds, {channels.data_ptr<float>(), static_cast<size_t>(channels.numel())});
    input = at::cat({states, channels.to(states.device()).expand({states.size(0), -1, -1, -1})}, 1);
  }
  const auto integers = at::TensorOptions(at::kLong).device(states.device());
  return model.predict(input, {.seed = model.config().loop.seed,
                               .step = at::scalar_tensor(keys.step, integers),
                               .sample = at::tensor(sample_numbers(keys), at::kLong).to(states.device())});
}

}  // namespace welkin::train
