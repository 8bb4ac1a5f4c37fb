// SPDX-License-Identifier: Apache-2.0
// All values of a data set in the memory of a device, and batches cut from them there: no byte of a sample crosses the bus.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/pipeline/device_transform.h"
#include "data/pipeline/sample_check.h"
#include "data/sample/dataset.h"
#include "data/sample/resident_arrays.h"

namespace welkin::data {

struct DeviceResidentOptions {
  NanPolicy nan = NanPolicy::Off;
  std::function<void(const std::string&)> report{};   // reports values that are not finite
  double stall_seconds = 0;                           // a read that takes longer is reported; 0: never
  std::function<void(const std::string&)> stalled{};  // called by a thread of its own
};

class DeviceResident {
 public:
  // Reads everything, in parallel and in pieces of 64 MiB. DataError where the device has too little memory, where a value
  // cannot be read, or where `options.nan` refuses one that is not finite. (Mask puts 0 or the channel's mean in its place;
  // Report reports it.) ConfigError for a data set that cannot be held on a device. `dataset` outlives it.
  DeviceResident(const Dataset& dataset, c10::Device device, const DeviceResidentOptions& options);

  uint64_t bytes() const;
  struct Arrays {
    at::Tensor input, target;  // (B, C, ...) float32 on the device, transformed
  };
  // Cuts the batch on the current stream.
  Arrays cut(const std::vector<SamplePlan>& plans) const;

 private:
  at::Tensor load(int64_t array, const DeviceResidentOptions& options) const;
  void report_nonfinite(const std::string& where, int64_t count, const DeviceResidentOptions& options) const;
  at::Tensor crop_side(const std::vector<const std::vector<ResidentCrop>*>& samples, const DeviceTransform& transform,
                       const ArraySpec& spec) const;

  const Dataset& dataset_;
  const ResidentArrays& held_;
  c10::Device device_;
  std::vector<ResidentArray> arrays_;
  DeviceTransform input_, target_;
  DeviceFill fill_;
  std::vector<at::Tensor> values_;  // one per array, flat: (first axis, channel, second axis, third axis)
};

}  // namespace welkin::data
