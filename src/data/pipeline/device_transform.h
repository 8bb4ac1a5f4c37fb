// SPDX-License-Identifier: Apache-2.0
// The transforms of one array of the samples (input or target) where they lie on a device: rotation with its vectors, clip,
// logarithm, normalisation in one pass of welkin::crop_samples. Gives the bits of channel_op.h, but for log(1 + x) on a GPU,
// whose last bit may differ.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <array>
#include <cstdint>
#include <vector>

#include "data/sample/dataset.h"
#include "ops/sample/sample_crop.h"

namespace welkin::data {

class DeviceTransform {
 public:
  // `vectors`: flat triples of channels that turn with the box. ConfigError as of channel_ops().
  DeviceTransform(const ArrayTransform& transform, int64_t channels, std::vector<int64_t> vectors, c10::Device device);

  int64_t channels() const { return channels_; }
  // (C, kCropOpWords) on the device.
  const at::Tensor& ops() const { return ops_; }
  // For every channel under an orientation: ops::crop_channel() of its source channel.
  std::vector<int64_t> turned_channels(int32_t orientation) const;
  // raw (B, C, [D,] H, W), contiguous on the device, as it lies in the file -> a new tensor of that shape, turned by the
  // samples' orientations and transformed; `raw` itself where there is nothing to do. Turned samples are cubes.
  at::Tensor apply(const at::Tensor& raw, const std::vector<int32_t>& orientations) const;

 private:
  int64_t channels_ = 0;
  std::vector<int64_t> vectors_;
  bool is_identity_ = true;
  at::Tensor ops_;
};

// fill_holes() of sample_check.h for a batch (B, C, [D,] H, W) on a device. Where `holes` is false the batch stays as it is.
class DeviceFill {
 public:
  DeviceFill(const SampleSpec& spec, bool holes, c10::Device device);
  at::Tensor apply(const at::Tensor& input) const;

 private:
  bool holes_;
  at::Tensor fill_;  // (C, 1, ...); undefined: 0
};

// How an output of this orientation runs through an array that begins at `offset`; its first element is cell `first`.
ops::CropPlace crop_place(int64_t offset, const std::array<int64_t, 3>& first, int32_t orientation);

// Device tables that a kernel reads. They are copied through page-locked memory to a GPU, so that the host does not wait.
at::Tensor place_table(const std::vector<ops::CropPlace>& places, c10::Device device);
at::Tensor channel_table(const std::vector<int64_t>& rows, int64_t channels, c10::Device device);

}  // namespace welkin::data
