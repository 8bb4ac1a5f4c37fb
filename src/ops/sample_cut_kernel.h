// SPDX-License-Identifier: Apache-2.0
// The arithmetic of cutting, turning and transforming samples, shared by the CPU and the CUDA form; torch-free. constexpr, so
// that nvcc takes the functions for the device too. An output cell of a sample names one element of the source; what becomes of
// its value is in this order: sign, clip, log(1 + x), (x - mean) / std, each step rounded to float32.
#pragma once

#include <cmath>
#include <cstdint>

namespace welkin::ops {

// Where the elements of the source are: strides of channel and of its three axes, and the axes' extents, for cuts that wrap.
struct CutSource {
  int64_t stride[4] = {};
  int64_t edge[3] = {};
};

// The output: samples, channels and three axes, with any strides.
struct CutTarget {
  int64_t size[5] = {};
  int64_t stride[5] = {};
};

// One sample's row of the table of places.
inline constexpr int kCutPlaceWords = 10;
struct CutPlace {
  int64_t offset = 0;     // element of the source at which its array begins
  int64_t first[3] = {};  // by axis of the source: the cell of the output's first element
  int64_t axis[3] = {};   // by axis of the output: along which axis of the source it runs
  int64_t step[3] = {};   // by axis of the output: 1, or -1 where it runs backwards
};
static_assert(sizeof(CutPlace) == kCutPlaceWords * sizeof(int64_t));

// One channel's row of the table of transforms.
inline constexpr int kCutOpWords = 6;
struct CutOp {
  double low = 0, high = 0;  // infinite where nothing is clipped
  double log = 0;            // 1: log(1 + x)
  double mean = 0, std = 1;  //
  double narrow = 0;         // 1: mean and std are float32 values, for which float32 arithmetic gives the same bits
};
static_assert(sizeof(CutOp) == kCutOpWords * sizeof(double));

// What an output channel is made of: the source's channel, and whether its sign changes (a component of a turned vector).
constexpr int64_t cut_channel(int64_t from, bool negated) { return 2 * from + (negated ? 1 : 0); }

// The source's element for output cell (i, j, k) of a channel; a cut is no longer than an edge, so it wraps once at most.
constexpr int64_t cut_element(const CutSource& source, const CutPlace& place, int64_t channel, int64_t i, int64_t j, int64_t k) {
  const int64_t cell[3] = {i, j, k};
  int64_t element = place.offset + (channel >> 1) * source.stride[0];
  for (int a = 0; a < 3; ++a) {
    const int64_t axis = place.axis[a], edge = source.edge[axis];
    int64_t at = place.first[axis] + place.step[a] * cell[a];
    at = at < 0 ? at + edge : at >= edge ? at - edge : at;
    element += at * source.stride[1 + axis];
  }
  return element;
}

constexpr float cut_value(float value, bool negated, const CutOp& op) {
  if (negated) value = -value;
  const auto low = static_cast<float>(op.low), high = static_cast<float>(op.high);
  value = value < low ? low : value;  // NaN stays NaN: both comparisons are false
  value = value > high ? high : value;
  if (op.log != 0) value = log1pf(value);
  if (op.narrow != 0) return (value - static_cast<float>(op.mean)) / static_cast<float>(op.std);
  const auto centred = static_cast<float>(static_cast<double>(value) - op.mean);
  return static_cast<float>(static_cast<double>(centred) / op.std);
}

}  // namespace welkin::ops
