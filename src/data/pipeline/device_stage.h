// SPDX-License-Identifier: Apache-2.0
// Host batch -> device batch: the copy on a side stream, and rotation, clip, logarithm and normalisation there in one pass. On
// the CPU the batch stays where it is. Works through c10's device-neutral interface: no CUDA header is needed to build it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <optional>

#include "data/pipeline/batch_ring.h"
#include "data/pipeline/device_transform.h"
#include "data/sample/dataset.h"

namespace welkin::data {

// The places of a batch's samples in the epoch, (B) int64 on the device; the host waits for nothing.
at::Tensor sample_positions(const MicroBatch& place, c10::Device device);

struct DeviceBatch {
  at::Tensor input, target, sample;
  std::optional<c10::Event> copied;  // recorded on the side stream; absent on the CPU
};

struct DeviceStageOptions {
  c10::Device device = c10::kCPU;
  bool non_blocking = true;  // else start() returns when the copy has happened
  bool holes = false;        // the input is filled where it has no value: NanPolicy::Hole
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
  DeviceStageOptions options_;
  std::optional<DeviceTransform> input_, target_;
  std::optional<DeviceFill> fill_;
  std::optional<c10::Stream> side_;
};

}  // namespace welkin::data
