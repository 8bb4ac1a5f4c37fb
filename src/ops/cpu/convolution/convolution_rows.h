// SPDX-License-Identifier: Apache-2.0
// Loops over rows of channels beside the matmuls: packing of weights, activations, their gradients, and sums of lines. In an
// unnamed namespace for the reason in ops/cpu/lanes/lanes.h.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "ops/cpu/convolution/convolution_lanes.h"
#include "ops/cpu/lanes/bf16_lanes.h"

namespace welkin::ops {
namespace {

// Transposes by exchanging blocks: bit S of i and j changes places, for one S after the other.
template <int W, int S, size_t... J>
WELKIN_INLINE void swap_blocks(Floats<W>& a, Floats<W>& b, std::index_sequence<J...> /*lanes*/) {
  const Floats<W> low = __builtin_shufflevector(a, b, ((J & S) != 0 ? static_cast<int>(W + J - S) : static_cast<int>(J))...);
  const Floats<W> high = __builtin_shufflevector(a, b, ((J & S) != 0 ? static_cast<int>(W + J) : static_cast<int>(J + S))...);
  a = low;
  b = high;
}

template <int W, int S = W / 2>
WELKIN_INLINE void transpose(Floats<W> (&rows)[W]) {
  for (int i = 0; i < W; ++i) {
    if ((i & S) == 0) swap_blocks<W, S>(rows[i], rows[i + S], std::make_index_sequence<W>{});
  }
  if constexpr (S > 1) transpose<W, S / 2>(rows);
}

// Rows of weights are kilobytes apart, which no prefetcher follows: this many rows ahead are prefetched.
constexpr int64_t kRowsAhead = 16;
constexpr int64_t kLineFloats = 16;

WELKIN_INLINE void ask_for_row(const float* row, int64_t width) {
  for (int64_t n = 0; n < width; n += kLineFloats) __builtin_prefetch(row + n);
}

// Rounds as memory of type S would.
template <int W, typename S>
WELKIN_INLINE Floats<W> as_stored(Floats<W> x) {
  if constexpr (std::is_same_v<S, float>) {
    return x;
  } else {
    return rounded_to_bf16<W>(x);
  }
}

template <int W, typename S>
void pack_floats(const WeightMatrix& from, int64_t depth, int64_t width, float* to) {
  if (from.width_stride == 1) {
    for (int64_t k = 0; k < depth; ++k, to += width) {
      const float* row = from.data + k * from.depth_stride;
      ask_for_row(row + kRowsAhead * from.depth_stride, width);
      for_vectors<W>(width, [&](auto lanes, int64_t n) { store<lanes>(to + n, as_stored<lanes, S>(load<lanes>(row + n))); });
    }
    return;
  }
  if constexpr (kEndsWithHalf<W, float>) {
    if (depth % W != 0 || width % W != 0) return pack_floats<W / 2, S>(from, depth, width, to);
  }
  for (int64_t k = 0; k < depth; k += W) {
    for (int64_t n = 0; n < width; n += W) {
      Floats<W> rows[W];
      for (int i = 0; i < W; ++i) rows[i] = load<W>(from.data + (n + i) * from.width_stride + k);
      transpose<W>(rows);
      for (int i = 0; i < W; ++i) store<W>(to + (k + i) * width + n, as_stored<W, S>(rows[i]));
    }
  }
}

template <int W, typename S>
void activate_floats(const float* x, float slope, int64_t count, S* to) {
  for_vectors<W>(count,
                 [&](auto lanes, int64_t i) { store<lanes>(to + i, LeakyReluLanes<lanes>(slope).of(load<lanes>(x + i))); });
}

template <int W, typename S>
void gate_floats(const S* grad, const S* out, float slope, int64_t rows, int64_t width, float* gated, float* sums) {
  for (int64_t n = 0; n < width; ++n) sums[n] = 0;
  for (int64_t r = 0; r < rows; ++r, grad += width, out += width, gated += width) {
    for_vectors<W>(width, [&](auto lanes, int64_t n) {
      const Floats<lanes> passed = LeakyReluLanes<lanes>(slope).of_gradient(load<lanes>(grad + n), load<lanes>(out + n));
      store<lanes>(gated + n, passed);
      store<lanes>(sums + n, load<lanes>(sums + n) + passed);
    });
  }
}

// Vectors of N lanes, then of fewer: `count` is short, and no vector may write into the next voxel's numbers.
template <int N>
WELKIN_INLINE void add_numbers(const float* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + N <= count; i += N) store<N>(to + i, load<N>(to + i) + load<N>(from + i));
  if constexpr (N > 2) {
    if (i < count) add_numbers<N / 2>(from + i, count - i, to + i);
  } else {
    if (i < count) to[i] += from[i];
  }
}

// Goes along the line step by step, adding all voxels that reach a step. Voxel by voxel, each would wait for the memory that
// the previous one has just written.
template <int W>
void scatter_line(const float* from, const LineScatter& rule, float* line) {
  constexpr int kLanes = W < 8 ? W : 8;
  const int64_t reach = (rule.segment + rule.step - 1) / rule.step;
  for (int64_t at = 0; at < rule.voxels + reach - 1; ++at) {
    for (int64_t j = reach - 1; j >= 0; --j) {
      if (at < j || at - j >= rule.voxels) continue;
      const int64_t left = rule.segment - j * rule.step;
      add_numbers<kLanes>(from + (at - j) * rule.from_stride + j * rule.step, left < rule.step ? left : rule.step,
                          line + at * rule.step);
    }
  }
}

}  // namespace
}  // namespace welkin::ops
