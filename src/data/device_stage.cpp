// SPDX-License-Identifier: Apache-2.0
#include "data/device_stage.h"

#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tensor.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <numeric>

namespace welkin::data {
namespace {

at::Tensor positions_of(const MicroBatch& place) {
  at::Tensor positions = at::empty({place.count}, at::kLong);
  auto* values = static_cast<int64_t*>(positions.data_ptr());
  std::iota(values, values + place.count, place.first_position);
  return positions;
}

at::Tensor per_channel(const std::vector<double>& values, const at::Tensor& like) {
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape.at(1) = static_cast<int64_t>(values.size());
  return at::tensor(values, at::kDouble).view(shape).to(like.device());
}

bool all_float(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return static_cast<double>(static_cast<float>(value)) == value; });
}

}  // namespace

void normalise_on_device(at::Tensor& values, const std::vector<double>& mean, const std::vector<double>& std) {
  if (mean.empty()) return;
  at::Tensor m = per_channel(mean, values), s = per_channel(std, values);
  if (all_float(mean) && all_float(std)) {
    values.sub_(m.to(at::kFloat)).div_(s.to(at::kFloat));
    return;
  }
  values.copy_(at::sub(values.to(at::kDouble), m));  // rounds to float32
  values.copy_(at::div(values.to(at::kDouble), s));
}

void transform_on_device(at::Tensor& values, const ArrayTransform& transform) {
  if (!transform.clip.empty()) values.clamp_(transform.clip[0], transform.clip[1]);
  for (const int64_t channel : transform.log) values.select(1, channel).log1p_();
  normalise_on_device(values, transform.mean, transform.std);
}

DeviceStage::DeviceStage(const SampleSpec& spec, const DeviceStageOptions& options) : spec_(spec), options_(options) {
  if (is_host()) return;
  side_ = c10::impl::VirtualGuardImpl(options.device.type()).getStreamFromGlobalPool(options.device, false);
}

DeviceBatch DeviceStage::start(const HostBatch& batch) {
  const int64_t count = batch.place.count;
  DeviceBatch out{batch.input.narrow(0, 0, count), batch.target.narrow(0, 0, count), positions_of(batch.place), std::nullopt};
  if (is_host()) return out;
  const c10::StreamGuard guard(*side_);
  const c10::Device device = options_.device;
  out.input = out.input.to(device, options_.non_blocking);
  out.target = out.target.to(device, options_.non_blocking);
  out.sample = out.sample.to(device);
  transform_on_device(out.input, input_transform(spec_));
  transform_on_device(out.target, target_transform(spec_));
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
