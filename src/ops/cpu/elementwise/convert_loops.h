// SPDX-License-Identifier: Apache-2.0
// Copies between float32 and bfloat16 by W lanes. Included by one file per instruction set; see ops/cpu/lanes/lanes.h for the
// unnamed namespace.
#pragma once

#include "ops/cpu/elementwise/convert_kernel.h"
#include "ops/cpu/lanes/bf16_lanes.h"

namespace welkin::ops {
namespace {

template <int W>
void widen_loop(const Bf16* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + W <= count; i += W) store<W>(to + i, load<W>(from + i));
  for (; i < count; ++i) to[i] = to_float(from[i]);
}

template <int W>
void narrow_loop(const float* from, const float* bias, Bf16* to, int64_t rows, int64_t width) {
  if (bias == nullptr) {  // then the matrix is one long row
    width *= rows;
    rows = 1;
  }
  for (int64_t row = 0; row < rows; ++row, from += width, to += width) {
    int64_t i = 0;
    for (; i + W <= width; i += W) {
      const Floats<W> x = load<W>(from + i);
      store<W>(to + i, bias == nullptr ? x : x + load<W>(bias + i));
    }
    for (; i < width; ++i) to[i] = rounded_to<Bf16>(bias == nullptr ? from[i] : from[i] + bias[i]);
  }
}

template <int W>
void round_loop(const float* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + W <= count; i += W) store<W>(to + i, rounded_to_bf16<W>(load<W>(from + i)));
  for (; i < count; ++i) to[i] = to_float(rounded_to<Bf16>(from[i]));
}

template <int W>
void add_loop(const float* x, const Bf16* y, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + W <= count; i += W) store<W>(to + i, load<W>(x + i) + load<W>(y + i));
  for (; i < count; ++i) to[i] = x[i] + to_float(y[i]);
}

template <int W>
constexpr ConvertKernel kConvert{widen_loop<W>, narrow_loop<W>, round_loop<W>, add_loop<W>};

}  // namespace
}  // namespace welkin::ops
