// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/device_stage.h"

#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <numeric>

namespace welkin::data {

// Copies through page-locked memory: a copy from other memory waits for all work of the stream.
at::Tensor sample_positions(const MicroBatch& place, c10::Device device) {
  at::Tensor positions = at::empty({place.count}, at::TensorOptions(at::kLong).pinned_memory(device.is_cuda()));
  auto* values = static_cast<int64_t*>(positions.data_ptr());
  std::iota(values, values + place.count, place.first_position);
  return device.is_cpu() ? positions : positions.to(device, /*non_blocking=*/true);
}

DeviceStage::DeviceStage(const SampleSpec& spec, const DeviceStageOptions& options) : options_(options) {
  if (is_host()) return;
  side_ = c10::impl::VirtualGuardImpl(options.device.type()).getStreamFromGlobalPool(options.device, false);
  // The tables of the transforms are copied on the stream that reads them: nothing else orders the two.
  const c10::StreamGuard guard(*side_);
  input_.emplace(input_transform(spec), spec.input.shape.at(0), spec.input_vectors, options.device);
  target_.emplace(target_transform(spec), spec.target.shape.at(0), spec.target_vectors, options.device);
  fill_.emplace(spec, options.holes, options.device);
}

DeviceBatch DeviceStage::start(const HostBatch& batch) {
  const int64_t count = batch.place.count;
  const c10::Device device = options_.device;
  DeviceBatch out{batch.input.narrow(0, 0, count), batch.target.narrow(0, 0, count), {}, std::nullopt};
  if (is_host()) {
    out.sample = sample_positions(batch.place, device);
    return out;
  }
  const c10::StreamGuard guard(*side_);
  out.sample = sample_positions(batch.place, device);
  out.input = fill_->apply(input_->apply(out.input.to(device, options_.non_blocking), batch.orientations));
  out.target = target_->apply(out.target.to(device, options_.non_blocking), batch.orientations);
  out.copied.emplace(device.type());
  out.copied->record(*side_);
  if (!options_.non_blocking) out.copied->synchronize();
  return out;
}

void DeviceStage::join(const DeviceBatch& batch) const {
  if (is_host()) return;
  const c10::impl::VirtualGuardImpl device(options_.device.type());
  const c10::Stream current = device.getStream(options_.device);
  batch.copied->block(current);
  // The tensors were made on the side stream: their memory must not be reused before the current stream is done with them.
  for (const at::Tensor* tensor : {&batch.input, &batch.target, &batch.sample}) {
    device.recordDataPtrOnStream(tensor->storage().data_ptr(), current);
  }
}

void DeviceStage::wait(const DeviceBatch& batch) {
  if (batch.copied) batch.copied->synchronize();
}

}  // namespace welkin::data
