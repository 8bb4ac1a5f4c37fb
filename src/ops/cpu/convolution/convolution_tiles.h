// SPDX-License-Identifier: Apache-2.0
// The matmuls for W lanes. Each block is summed from zero and then added: a sum of tens of thousands of terms, over all taps
// and channels, is made of short sums and rounds less, so that fewer activations change their sign. Included by one
// file per instruction set; see ops/cpu/lanes/lanes.h for the unnamed namespace.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "ops/cpu/convolution/convolution_kernel.h"
#include "ops/cpu/lanes/bf16_lanes.h"
#include "ops/cpu/lanes/dot.h"

namespace welkin::ops {
namespace {

// The leaky ReLU for lanes, with a slope of 0 or more. A ReLU makes zero of infinities and of any gradient below zero; a
// product with its slope would make NaN (ops/arithmetic/bias_leaky_relu_kernel.h).
template <int W>
class LeakyReluLanes {
 public:
  WELKIN_INLINE explicit LeakyReluLanes(float slope)
      : slope_(slope), floor_(broadcast<W>(slope == 0 ? 0.0F : -kInfinity)), kept_(Int{} - (slope == 0 ? 0 : 1)) {}

  WELKIN_INLINE Floats<W> of(Floats<W> x) const {
    const Floats<W> below = floor_ > x ? floor_ : x;  // this order is one x86 instruction, and keeps NaN
    return x > Floats<W>{} ? x : below * slope_;
  }
  WELKIN_INLINE Floats<W> of_gradient(Floats<W> gradient, Floats<W> out) const {
    const Floats<W> below = reinterpret_cast<Floats<W>>(reinterpret_cast<Int>(gradient * slope_) & kept_);
    return out > Floats<W>{} ? gradient : below;
  }

 private:
  using Int = typename Lanes<W>::Int;
  static constexpr float kInfinity = __builtin_inff();
  float slope_;
  Floats<W> floor_;  // lower limit of sums: minus infinity, or zero for a ReLU
  Int kept_;         // mask for the bits of a gradient below zero
};

template <int W, typename T, int R, int V>
WELKIN_INLINE void add_rows_tile(const T* const* left, float* const* result, int64_t offset, const T* panel, int64_t stride,
                                 int64_t depth) {
  using Step = Dot<W, T>;
  const T* from[R];
  Floats<W> sums[R][V];
  for (int r = 0; r < R; ++r) {
    from[r] = left[r];
    for (int v = 0; v < V; ++v) sums[r][v] = Floats<W>{};
  }
  for (int64_t k = 0; k < depth; k += Step::kDepth) {
    typename Step::Vector b[V];
    for (int v = 0; v < V; ++v) b[v] = Step::read(panel + k * stride + v * W * Step::kDepth);
    for (int r = 0; r < R; ++r) {
      const typename Step::Vector a = Step::spread(from[r] + k);
      for (int v = 0; v < V; ++v) sums[r][v] = Step::add(sums[r][v], a, b[v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      float* to = result[r] + offset + v * W;
      store<W>(to, load<W>(to) + sums[r][v]);
    }
  }
}

// V vectors from `offset` on, for all rows. The last tile is padded with copies of the last row, whose results are unused.
template <int W, typename T, int V>
__attribute__((noinline)) void add_rows_strip(const T* const* left, float* const* result, int64_t count, int64_t offset,
                                              const T* panel, int64_t stride, int64_t depth) {
  constexpr int kRows = tile_rows(W, V);
  int64_t row = 0;
  for (; row + kRows <= count; row += kRows) {
    add_rows_tile<W, T, kRows, V>(left + row, result + row, offset, panel, stride, depth);
  }
  if (row == count) return;
  float nowhere[kChannelPanel] = {};
  const T* last_left[kRows];
  float* last_result[kRows];
  for (int r = 0; r < kRows; ++r) {
    const bool real = row + r < count;
    last_left[r] = real ? left[row + r] : left[count - 1];
    last_result[r] = real ? result[row + r] : nowhere;
  }
  add_rows_tile<W, T, kRows, V>(last_left, last_result, offset, panel, stride, depth);
}

template <int W, typename T>
void add_rows(const T* const* left, float* const* result, int64_t count, const T* panel, int64_t depth, int64_t width) {
  for (int64_t done = 0; done < width / W;) {
    const int vectors = next_vectors<W>(width / W - done);
    const T* strip = panel + done * W * Dot<W, T>::kDepth;
    switch (vectors) {
      case 1:
        add_rows_strip<W, T, 1>(left, result, count, done * W, strip, width, depth);
        break;
      case 2:
        add_rows_strip<W, T, 2>(left, result, count, done * W, strip, width, depth);
        break;
      case 3:
        add_rows_strip<W, T, 3>(left, result, count, done * W, strip, width, depth);
        break;
      default:
        add_rows_strip<W, T, 4>(left, result, count, done * W, strip, width, depth);
        break;
    }
    done += vectors;
  }
}

template <int W, typename T, typename S, int R, int V>
WELKIN_INLINE void segment_tile(const T* const* left, const Segments& segments, const T* panel, int64_t stride, const float* bias,
                                float slope, S* const* to, int64_t offset) {
  using Step = Dot<W, T>;
  Floats<W> sums[R][V];
  for (int v = 0; v < V; ++v) {
    const Floats<W> first = bias != nullptr ? load<W>(bias + offset + v * W) : Floats<W>{};
    for (int r = 0; r < R; ++r) sums[r][v] = first;
  }
  for (int64_t s = 0; s < segments.count; ++s) {
    const int64_t at = segments.offsets[s];
    for (int64_t k = 0; k < segments.length; k += Step::kDepth, panel += Step::kDepth * stride) {
      typename Step::Vector b[V];
      for (int v = 0; v < V; ++v) b[v] = Step::read(panel + v * W * Step::kDepth);
      for (int r = 0; r < R; ++r) {
        const typename Step::Vector a = Step::spread(left[r] + at + k);
        for (int v = 0; v < V; ++v) sums[r][v] = Step::add(sums[r][v], a, b[v]);
      }
    }
  }
  const LeakyReluLanes<W> leaky_relu(slope);
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      const Floats<W> bent = leaky_relu.of(sums[r][v]);
      if constexpr (std::is_same_v<T, S>) {
        Step::write(to[r] + offset + v * W, bent);
      } else {
        store<W>(to[r] + offset + v * W, bent);
      }
    }
  }
}

// Like add_rows_strip: the last tile is padded with rows whose results are unused.
template <int W, typename T, typename S, int V>
__attribute__((noinline)) void segment_strip(const T* const* left, const Segments& segments, int64_t count, const T* panel,
                                             int64_t stride, const float* bias, float slope, S* const* to, int64_t offset) {
  constexpr int kRows = tile_rows(W, V);
  int64_t row = 0;
  for (; row + kRows <= count; row += kRows) {
    segment_tile<W, T, S, kRows, V>(left + row, segments, panel, stride, bias, slope, to + row, offset);
  }
  if (row == count) return;
  S nowhere[kChannelPanel];
  const T* last_left[kRows];
  S* last_to[kRows];
  for (int r = 0; r < kRows; ++r) {
    const bool real = row + r < count;
    last_left[r] = left[real ? row + r : count - 1];
    last_to[r] = real ? to[row + r] : nowhere;
  }
  segment_tile<W, T, S, kRows, V>(last_left, segments, panel, stride, bias, slope, last_to, offset);
}

template <int W, typename T, typename S = T>
void segment_rows(const T* const* left, const Segments& segments, int64_t count, const T* panel, const float* bias, float slope,
                  S* const* to, int64_t width) {
  for (int64_t done = 0; done < width / W;) {
    const int vectors = next_vectors<W>(width / W - done);
    const T* strip = panel + done * W * Dot<W, T>::kDepth;
    switch (vectors) {
      case 1:
        segment_strip<W, T, S, 1>(left, segments, count, strip, width, bias, slope, to, done * W);
        break;
      case 2:
        segment_strip<W, T, S, 2>(left, segments, count, strip, width, bias, slope, to, done * W);
        break;
      case 3:
        segment_strip<W, T, S, 3>(left, segments, count, strip, width, bias, slope, to, done * W);
        break;
      default:
        segment_strip<W, T, S, 4>(left, segments, count, strip, width, bias, slope, to, done * W);
        break;
    }
    done += vectors;
  }
}

template <int W, typename T, int R, int V, bool Add>
WELKIN_INLINE void outer_tile(const T* const* left, const T* const* right, int64_t count, int64_t row, int64_t column, float* sum,
                              int64_t stride) {
  using Step = Dot<W, T>;
  Floats<W> sums[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) sums[r][v] = Floats<W>{};
  }
  for (int64_t i = 0; i < count; ++i) {
    const T* a = left[i] + row * Step::kDepth;
    const T* b = right[i] + column * Step::kDepth;
    typename Step::Vector columns[V];
    for (int v = 0; v < V; ++v) columns[v] = Step::read(b + v * W * Step::kDepth);
    for (int r = 0; r < R; ++r) {
      const typename Step::Vector x = Step::spread(a + r * Step::kDepth);
      for (int v = 0; v < V; ++v) sums[r][v] = Step::add(sums[r][v], x, columns[v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      float* to = sum + r * stride + v * W;
      store<W>(to, Add ? load<W>(to) + sums[r][v] : sums[r][v]);
    }
  }
}

// Rows of the outer product's tile, with registers left for the columns.
constexpr int outer_rows(int lanes, int vectors) {
  if (lanes == 16) return vectors <= 2 ? 8 : 6;
  return vectors == 1 ? 8 : 4;
}

template <int W, typename T, int V, bool Add>
__attribute__((noinline)) void outer_strip(const T* const* left, const T* const* right, int64_t count, int64_t column, float* sum,
                                           int64_t stride, int64_t rows) {
  constexpr int kRows = outer_rows(W, V);
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    outer_tile<W, T, kRows, V, Add>(left, right, count, row, column, sum + row * stride + column, stride);
  }
  constexpr int kFew = 2;  // blocks have an even number of channels
  for (; row < rows; row += kFew) {
    outer_tile<W, T, kFew, V, Add>(left, right, count, row, column, sum + row * stride + column, stride);
  }
}

template <int W, typename T, bool Add>
void sum_outer_as(const T* const* left, const T* const* right, int64_t count, float* sum, int64_t stride, int64_t rows,
                  int64_t width) {
  for (int64_t done = 0; done < width / W;) {
    const int vectors = next_vectors<W>(width / W - done);
    switch (vectors) {
      case 1:
        outer_strip<W, T, 1, Add>(left, right, count, done * W, sum, stride, rows);
        break;
      case 2:
        outer_strip<W, T, 2, Add>(left, right, count, done * W, sum, stride, rows);
        break;
      case 3:
        outer_strip<W, T, 3, Add>(left, right, count, done * W, sum, stride, rows);
        break;
      default:
        outer_strip<W, T, 4, Add>(left, right, count, done * W, sum, stride, rows);
        break;
    }
    done += vectors;
  }
}

template <int W, typename T>
void sum_outer(const T* const* left, const T* const* right, int64_t count, float* sum, int64_t stride, int64_t rows,
               int64_t width, bool add) {
  if (add) {
    sum_outer_as<W, T, true>(left, right, count, sum, stride, rows, width);
  } else {
    sum_outer_as<W, T, false>(left, right, count, sum, stride, rows, width);
  }
}

// Distant rows, often a power of two apart, evict each other from the first-level cache during a sum. So
// they are gathered first. At most kPairBlock pairs of kChannelPanel channels.
template <int W>
void sum_outer_gathered(const float* const* left, const float* const* right, int64_t count, float* sum, int64_t stride,
                        int64_t rows, int64_t width, bool add) {
  alignas(64) float left_rows[kPairBlock * kChannelPanel];
  alignas(64) float right_rows[kPairBlock * kChannelPanel];
  const float* left_at[kPairBlock];
  const float* right_at[kPairBlock];
  for (int64_t i = 0; i < count; ++i) {
    float* to_left = left_rows + i * kChannelPanel;
    float* to_right = right_rows + i * kChannelPanel;
    for (int64_t c = 0; c < rows; c += W) store<W>(to_left + c, load<W>(left[i] + c));
    for (int64_t c = 0; c < width; c += W) store<W>(to_right + c, load<W>(right[i] + c));
    left_at[i] = to_left;
    right_at[i] = to_right;
  }
  sum_outer<W, float>(left_at, right_at, count, sum, stride, rows, width, add);
}

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

// Depth and width are multiples of W if depth is contiguous.
template <int W, typename S>
void pack_floats(const WeightMatrix& from, int64_t depth, int64_t width, float* to) {
  if (from.width_stride == 1) {
    for (int64_t k = 0; k < depth; ++k, to += width) {
      const float* row = from.data + k * from.depth_stride;
      ask_for_row(row + kRowsAhead * from.depth_stride, width);
      for (int64_t n = 0; n < width; n += W) store<W>(to + n, as_stored<W, S>(load<W>(row + n)));
    }
    return;
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
  const LeakyReluLanes<W> leaky_relu(slope);
  for (int64_t i = 0; i < count; i += W) store<W>(to + i, leaky_relu.of(load<W>(x + i)));
}

template <int W, typename S>
void gate_floats(const S* grad, const S* out, float slope, int64_t rows, int64_t width, float* gated, float* sums) {
  const LeakyReluLanes<W> leaky_relu(slope);
  for (int64_t n = 0; n < width; ++n) sums[n] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = r * width; i < (r + 1) * width; i += W) {
      const Floats<W> passed = leaky_relu.of_gradient(load<W>(grad + i), load<W>(out + i));
      store<W>(gated + i, passed);
      float* sum = sums + (i - r * width);
      store<W>(sum, load<W>(sum) + passed);
    }
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

template <int W, typename S>
constexpr ConvolutionKernel<float, S> kFloatConvolution{pack_floats<W, S>,     add_rows<W, float>,    segment_rows<W, float, S>,
                                                        sum_outer_gathered<W>, activate_floats<W, S>, gate_floats<W, S>,
                                                        scatter_line<W>};

}  // namespace
}  // namespace welkin::ops
