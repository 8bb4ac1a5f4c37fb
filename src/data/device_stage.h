// SPDX-License-Identifier: Apache-2.0
// Host batch -> device batch: the copy on a side stream and the device transform (normalisation). On the CPU the batch stays
// where it is. Works through c10's device-neutral interface: no CUDA header is needed to build it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <optional>

#include "data/batch_ring.h"
#include "data/dataset.h"

namespace welkin::data {

// (x - mean) / std per channel of (B, C, ...), each step rounded to float32, in place. Equal bit for bit to data::normalise.
void normalise_on_device(at::Tensor& values, const std::vector<double>& mean, const std::vector<double>& std);

// Clip, log(1 + x), then the above.
void transform_on_device(at::Tensor& values, const ArrayTransform& transform);

struct DeviceBatch {
  at::Tensor input, target, sample;
  std::optional<c10::Event> copied;  // recorded on the side stream; absent on the CPU
};

struct DeviceStageOptions {
  c10::Device device = c10::kCPU;
  bool non_blocking = true;  // else start() returns when the copy has happened
};

// Used by the thread that owns the pipeline.
class DeviceStage {
 public:
  DeviceStage(const SampleSpec& spec, const DeviceStageOptions& options);

  bool is_host() const { return options_.device.is_cpu(); }
  // Starts the copy; the host batch must stay until `copied` has happened.
  DeviceBatch start(const HostBatch& batch);
  // Makes the current stream wait for the copy (the host does not).
  void join(const DeviceBatch& batch) const;
  // Blocks the host until the copy has happened, so that the host buffer may be refilled.
  static void wait(const DeviceBatch& batch);

 private:
  const SampleSpec& spec_;
  DeviceStageOptions options_;
  std::optional<c10::Stream> side_;
};

}  // namespace welkin::data
