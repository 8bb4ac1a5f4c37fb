// SPDX-License-Identifier: Apache-2.0
// The arithmetic of cutting, turning and transforming samples, shared by the CPU and the CUDA form; torch-free. constexpr, so
// that nvcc takes the functions for the device too. An output cell of a sample names one element of the source; what becomes of
// its value is in this order: sign, clip, log(1 + x / eps), (x - mean) / std, each step rounded to float32.
#pragma once

#include <cmath>
#include <cstdint>

namespace welkin::ops {

// Where the elements of the source are: strides of channel and of its three axes, and the axes' extents, for cuts that wrap.
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
  int64_t first[3] = {};  // by axis of the source: the cell of the output's first element
  int64_t axis[3] = {};   // by axis of the output: along which axis of the source it runs
  int64_t step[3] = {};   // by axis of the output: 1, or -1 where it runs backwards
};
static_assert(sizeof(CropPlace) == kCropPlaceWords * sizeof(int64_t));

// One channel's row of the table of transforms.
inline constexpr int kCropOpWords = 6;
struct CropOp {
  double low = 0, high = 0;  // infinite where nothing is clipped
  double log = 0;            // eps of log(1 + x / eps); 0: no logarithm
  double mean = 0, std = 1;  //
  double narrow = 0;         // 1: mean and std are float32 values, for which float32 arithmetic gives the same bits
};
static_assert(sizeof(CropOp) == kCropOpWords * sizeof(double));

// What an output channel is made of: the source's channel, and whether its sign changes (a component of a turned vector).
constexpr int64_t crop_channel(int64_t from, bool negated) { return 2 * from + (negated ? 1 : 0); }

// Where the cells along an axis of the output are in the source; a cut is no longer than an edge, so it wraps once at most.
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

// The source's element of a channel, less what its cell along each axis adds.
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
