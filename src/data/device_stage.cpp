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

DeviceStage::DeviceStage(const SampleSpec& spec, c10::Device device) : spec_(spec), device_(device) {
  if (!is_host()) side_ = c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_, false);
}

DeviceBatch DeviceStage::start(const HostBatch& batch) {
  const int64_t count = batch.place.count;
  DeviceBatch out{batch.input.narrow(0, 0, count), batch.target.narrow(0, 0, count), positions_of(batch.place), std::nullopt};
  if (is_host()) return out;
  const c10::StreamGuard guard(*side_);
  out.input = out.input.to(device_, /*non_blocking=*/true);
  out.target = out.target.to(device_, /*non_blocking=*/true);
  out.sample = out.sample.to(device_);
  normalise_on_device(out.input, spec_.input_mean, spec_.input_std);
  normalise_on_device(out.target, spec_.target_mean, spec_.target_std);
  out.copied.emplace(device_.type());
  out.copied->record(*side_);
  return out;
}

void DeviceStage::join(const DeviceBatch& batch) const {
  if (is_host()) return;
  const c10::impl::VirtualGuardImpl device(device_.type());
  const c10::Stream current = device.getStream(device_);
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
