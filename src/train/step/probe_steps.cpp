// SPDX-License-Identifier: Apache-2.0
#include "train/step/probe_steps.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "config/schema/batch_plan.h"
#include "train/device/memory_limit.h"
#include "train/rollout/curriculum.h"

namespace welkin::train {
namespace {

// A tensor of the part of the samples that this rank reads; the values do not matter.
at::Tensor made_up(const data::ArraySpec& spec, const Layout& layout, int64_t samples, c10::Device device) {
  std::vector<int64_t> shape = spec.shape;
  if (const std::optional<data::Region> region = layout.shard.region()) {
    for (size_t d = 1; d < shape.size(); ++d) shape[d] = region->extent[d - 1];
  }
  shape.insert(shape.begin(), samples);
  return at::ones(shape, at::TensorOptions(at::kFloat).device(device));
}

}  // namespace

ProbeSteps::ProbeSteps(const Layout& layout, const SetupSource& source, const RunLength& length, const SiteInstaller& install)
    : config_(source.config), device_(source.device) {
  if (device_.is_cpu()) count_cpu_memory();
  setup_ = make_setup(layout, source, length, install);
  const config::BatchPlan plan = config::batch_plan(config_, layout.replicas.size());
  local_ = plan.local, micro_ = plan.micro;
  const data::SampleSpec longest = longest_sample(config_, source.spec);
  input_ = made_up(longest.input, layout, micro_, device_);
  target_ = made_up(longest.target, layout, micro_, device_);
  if (device_.is_cpu()) extra_bytes_ = static_cast<int64_t>(input_.nbytes() + target_.nbytes());
  step_ = std::make_unique<EagerStep>(
      *setup_, config_,
      StepOptions{.device = device_, .world_group = source.world_group, .dataset_size = config_.loop.global_batch_size});
}

data::Batch ProbeSteps::batch_of(int64_t micro) const {
  const int64_t first = micro * micro_, count = std::min(micro_, local_ - first);
  data::Batch batch{.input = input_.narrow(0, 0, count),
                    .target = target_.narrow(0, 0, count),
                    .sample = at::arange(first, first + count, at::TensorOptions(at::kLong).device(device_)),
                    .indices = std::vector<int64_t>(static_cast<size_t>(count)),
                    .micro = micro,
                    .num_micro = (local_ + micro_ - 1) / micro_,
                    .step_samples = local_};
  return batch;
}

void ProbeSteps::run() {
  step_->run([this, micro = int64_t{0}]() mutable { return batch_of(micro++); });
  settle(device_);
}

void settle(c10::Device device) {
  if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
}

}  // namespace welkin::train
