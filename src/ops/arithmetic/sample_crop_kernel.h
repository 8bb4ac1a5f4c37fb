// SPDX-License-Identifier: Apache-2.0
// The arithmetic of cropping, turning and transforming samples, shared by the CPU and the CUDA form; torch-free. constexpr, so
// that nvcc also compiles the functions for the device. Each output cell of a sample reads one element of the source. Its value
// is transformed in this order: sign, clip, log(1 + x / eps), (x - mean) / std, each step rounded to float32.
#pragma once

#include <cmath>
#include <cstdint>

namespace welkin::ops {

// Layout of the source: strides of channel and of its three axes, and the axes' extents, for crops that wrap around.
struct CropSource {
  int64_t stride[4] = {};
  int64_t edge[3] = {};
};

// The output: samples, channels and three axes, with any strides.
struct CropTarget {
  int64_t size[5] = {};
  int64_t stride[5] = {};
};

// One sample's row of the table of places.
inline constexpr int kCropPlaceWords = 10;
struct CropPlace {
  int64_t offset = 0;     // element of the source at which its array begins
  int64_t first[3] = {};  // by axis of the source: cell of the output's first element
  int64_t axis[3] = {};   // by axis of the output: the axis of the source along which it runs
  int64_t step[3] = {};   // by axis of the output: 1, or -1 for the reverse direction
};
static_assert(sizeof(CropPlace) == kCropPlaceWords * sizeof(int64_t));

// One channel's row of the table of transforms.
inline constexpr int kCropOpWords = 6;
struct CropOp {
  double low = 0, high = 0;  // infinite if nothing is clipped
  double log = 0;            // eps of log(1 + x / eps); 0: no logarithm
  double mean = 0, std = 1;  //
  double narrow = 0;         // 1: mean and std are float32 values, so that float32 arithmetic gives the same bits
};
static_assert(sizeof(CropOp) == kCropOpWords * sizeof(double));

// Encodes an output channel's source: the channel, and whether its sign changes (a component of a turned vector).
constexpr int64_t crop_channel(int64_t from, bool negated) { return 2 * from + (negated ? 1 : 0); }

// Maps cells along an output axis to the source. A crop is no longer than an edge, so it wraps at most once.
struct CropAxis {
  int64_t first = 0, step = 1, edge = 0, stride = 0;

  constexpr int64_t element(int64_t cell) const {
    const int64_t at = first + step * cell;
    return (at < 0 ? at + edge : at >= edge ? at - edge : at) * stride;
  }
};

constexpr CropAxis crop_axis(const CropSource& source, const CropPlace& place, int axis) {
  const int64_t along = place.axis[axis];
  return {place.first[along], place.step[axis], source.edge[along], source.stride[1 + along]};
}

// The source element of a channel, without the offsets of its cell along each axis.
constexpr int64_t crop_begin(const CropSource& source, const CropPlace& place, int64_t channel) {
  return place.offset + (channel >> 1) * source.stride[0];
}

constexpr float crop_value(float value, bool negated, const CropOp& op) {
  if (negated) value = -value;
  const auto low = static_cast<float>(op.low), high = static_cast<float>(op.high);
  value = value < low ? low : value;  // NaN stays NaN: both comparisons are false
  value = value > high ? high : value;
  if (op.log != 0) value = log1pf(value / static_cast<float>(op.log));
  if (op.mean == 0 && op.std == 1) return value;  // the same bits, without a division in double, which is slow on a GPU
  if (op.narrow != 0) return (value - static_cast<float>(op.mean)) / static_cast<float>(op.std);
  const auto centred = static_cast<float>(static_cast<double>(value) - op.mean);
  return static_cast<float>(static_cast<double>(centred) / op.std);
}

}  // namespace welkin::ops
