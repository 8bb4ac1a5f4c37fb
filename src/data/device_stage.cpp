// SPDX-License-Identifier: Apache-2.0
#include "data/device_stage.h"

#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <numeric>

namespace welkin::data {

at::Tensor sample_positions(const MicroBatch& place) {
  at::Tensor positions = at::empty({place.count}, at::kLong);
  auto* values = static_cast<int64_t*>(positions.data_ptr());
  std::iota(values, values + place.count, place.first_position);
  return positions;
}

DeviceStage::DeviceStage(const SampleSpec& spec, const DeviceStageOptions& options) : options_(options) {
  if (is_host()) return;
  input_.emplace(input_transform(spec), spec.input.shape.at(0), spec.input_vectors, options.device);
  target_.emplace(target_transform(spec), spec.target.shape.at(0), spec.target_vectors, options.device);
  side_ = c10::impl::VirtualGuardImpl(options.device.type()).getStreamFromGlobalPool(options.device, false);
}

DeviceBatch DeviceStage::start(const HostBatch& batch) {
  const int64_t count = batch.place.count;
  DeviceBatch out{batch.input.narrow(0, 0, count), batch.target.narrow(0, 0, count), sample_positions(batch.place), std::nullopt};
  if (is_host()) return out;
  const c10::StreamGuard guard(*side_);
  const c10::Device device = options_.device;
  out.sample = out.sample.to(device);
  out.input = input_->apply(out.input.to(device, options_.non_blocking), batch.orientations);
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
  // The tensors were made on the side stream: their memory must not be handed out again before this one is done with them.
  for (const at::Tensor* tensor : {&batch.input, &batch.target, &batch.sample}) {
    device.recordDataPtrOnStream(tensor->storage().data_ptr(), current);
  }
}

void DeviceStage::wait(const DeviceBatch& batch) {
  if (batch.copied) batch.copied->synchronize();
}

}  // namespace welkin::data
