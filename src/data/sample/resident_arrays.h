// SPDX-License-Identifier: Apache-2.0
// Describes a data set so that its values can be held on a device and its samples cut there: by a few arrays of planes, and by
// the cells that make up each sample's input and target. Knows no device.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/sample/dataset.h"

namespace welkin::data {

struct ResidentArray {
  int64_t channels = 0;
  std::array<int64_t, 3> extent{};  // cells along the axes; time steps along the first for series of fields
  std::vector<double> mean{};       // of the channels, which masked values become; empty: 0

  int64_t num_values() const { return channels * extent[0] * extent[1] * extent[2]; }
};

// Channels [first_channel, first_channel + num_channels) of a sample's input or target, cut from one held array. A cut that
// leaves the array at an end goes on at the other one.
struct ResidentCrop {
  int64_t array = 0;
  std::array<int64_t, 3> first{};   // by axis of the array: the cell of the output's first element
  std::array<int64_t, 3> extent{};  // of the output
  int32_t orientation = 0;          // data/sample/orientation.h
  int64_t first_channel = 0;        // of the sample; it is channel 0 of the array unless the orientation turns vectors
  int64_t num_channels = 0;
};

struct ResidentSample {
  std::vector<ResidentCrop> input, target;  // as many of the same shape for every sample
};

// Thread-safe.
class ResidentArrays {
 public:
  virtual ~ResidentArrays() = default;
  virtual std::vector<ResidentArray> arrays() const = 0;
  // Plane `index` along the array's first axis, of one channel. DataError as in Dataset::read.
  virtual void read_plane(int64_t array, int64_t channel, int64_t index, std::span<float> out) const = 0;
  // The source of that plane, for messages: file, channel, place.
  virtual std::string plane_location(int64_t array, int64_t channel, int64_t index) const = 0;
  virtual ResidentSample crops(const SamplePlan& plan) const = 0;
};

}  // namespace welkin::data
