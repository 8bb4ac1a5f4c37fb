// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/model_step.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

namespace welkin::train {
namespace {

// A number that no other member of any start has.
std::vector<int64_t> sample_numbers(const MemberKeys& keys) {
  std::vector<int64_t> numbers;
  for (const int64_t member : keys.members) numbers.push_back((keys.start_seconds << 20) + member);
  return numbers;
}

}  // namespace

at::Tensor predict_step(const TrainedModel& model, const at::Tensor& input, const MemberKeys& keys) {
  const auto integers = at::TensorOptions(at::kLong).device(input.device());
  return model.predict(input, {.seed = keys.seed,
                               .step = at::scalar_tensor(keys.step, integers),
                               .sample = at::tensor(sample_numbers(keys), at::kLong).to(input.device())});
}

}  // namespace welkin::train
