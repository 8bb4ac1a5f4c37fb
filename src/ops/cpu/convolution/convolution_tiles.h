// SPDX-License-Identifier: Apache-2.0
// The matmuls for W lanes. Each block is summed from zero and then added: a sum of tens of thousands of terms, over all taps
// and channels, is made of short sums and rounds less, so that fewer activations change their sign. Included by one
// file per instruction set; see ops/cpu/lanes/lanes.h for the unnamed namespace.
#pragma once

#include <type_traits>
#include <utility>

#include "ops/cpu/convolution/convolution_lanes.h"
#include "ops/cpu/convolution/convolution_rows.h"
#include "ops/cpu/lanes/dot.h"

namespace welkin::ops {
namespace {

// A strip of half a vector of columns. Its vectors hold two steps of depth for each column, next to each other.
constexpr int kHalfVector = 0;

constexpr int strip_rows(int lanes, int vectors) { return tile_rows(lanes, vectors == kHalfVector ? 1 : vectors); }

template <int W, size_t... J>
WELKIN_INLINE Floats<W> interleaved(Floats<W / 2> a, Floats<W / 2> b, std::index_sequence<J...> /*lanes*/) {
  return __builtin_shufflevector(a, b, (static_cast<int>(J / 2) + (J % 2 == 0 ? 0 : W / 2))...);
}

template <int W, size_t... J>
WELKIN_INLINE Floats<W / 2> sum_of_pairs(Floats<W> x, std::index_sequence<J...> /*lanes*/) {
  return __builtin_shufflevector(x, x, static_cast<int>(2 * J)...) +
         __builtin_shufflevector(x, x, static_cast<int>(2 * J + 1)...);
}

template <int W>
WELKIN_INLINE Floats<W> spread_pair(const float* from) {
  typedef int64_t Pairs __attribute__((vector_size(4 * W)));         // NOLINT(modernize-use-using)
  typedef int64_t Unaligned __attribute__((aligned(4), may_alias));  // NOLINT(modernize-use-using)
  return reinterpret_cast<Floats<W>>(*reinterpret_cast<const Unaligned*>(from) - Pairs{});
}

// sums[r] += the products of left[r][at, at + depth) and W / 2 columns of a panel; depth is even.
template <int W, int R>
WELKIN_INLINE void add_pairs(const float* const* left, int64_t at, const float* panel, int64_t stride, int64_t depth,
                             Floats<W> (&sums)[R]) {
  for (int64_t k = 0; k < depth; k += 2, panel += 2 * stride) {
    const Floats<W> b = interleaved<W>(load<W / 2>(panel), load<W / 2>(panel + stride), std::make_index_sequence<W>{});
    for (int r = 0; r < R; ++r) sums[r] += spread_pair<W>(left[r] + at + k) * b;
  }
}

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

template <int W, int R>
WELKIN_INLINE void add_rows_half_tile(const float* const* left, float* const* result, int64_t offset, const float* panel,
                                      int64_t stride, int64_t depth) {
  Floats<W> sums[R] = {};
  add_pairs<W, R>(left, 0, panel, stride, depth, sums);
  for (int r = 0; r < R; ++r) {
    float* to = result[r] + offset;
    store<W / 2>(to, load<W / 2>(to) + sum_of_pairs<W>(sums[r], std::make_index_sequence<W / 2>{}));
  }
}

template <int W, typename T, int R, int V>
WELKIN_INLINE void add_rows_of(const T* const* left, float* const* result, int64_t offset, const T* panel, int64_t stride,
                               int64_t depth) {
  if constexpr (V == kHalfVector) {
    add_rows_half_tile<W, R>(left, result, offset, panel, stride, depth);
  } else {
    add_rows_tile<W, T, R, V>(left, result, offset, panel, stride, depth);
  }
}

// V vectors from `offset` on, for all rows. The last tile is padded with copies of the last row, whose results are unused.
template <int W, typename T, int V>
__attribute__((noinline)) void add_rows_strip(const T* const* left, float* const* result, int64_t count, int64_t offset,
                                              const T* panel, int64_t stride, int64_t depth) {
  constexpr int kRows = strip_rows(W, V);
  int64_t row = 0;
  for (; row + kRows <= count; row += kRows) {
    add_rows_of<W, T, kRows, V>(left + row, result + row, offset, panel, stride, depth);
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
  add_rows_of<W, T, kRows, V>(last_left, last_result, offset, panel, stride, depth);
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
  if constexpr (kEndsWithHalf<W, T>) {
    const int64_t done = width / W * W;
    if (done < width) add_rows_strip<W, T, kHalfVector>(left, result, count, done, panel + done, width, depth);
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

template <int W, typename S, int R>
WELKIN_INLINE void segment_half_tile(const float* const* left, const Segments& segments, const float* panel, int64_t stride,
                                     const float* bias, float slope, S* const* to, int64_t offset) {
  Floats<W> sums[R] = {};
  for (int64_t s = 0; s < segments.count; ++s, panel += segments.length * stride) {
    add_pairs<W, R>(left, segments.offsets[s], panel, stride, segments.length, sums);
  }
  const Floats<W / 2> first = bias != nullptr ? load<W / 2>(bias + offset) : Floats<W / 2>{};
  const LeakyReluLanes<W / 2> leaky_relu(slope);
  for (int r = 0; r < R; ++r) {
    const Floats<W / 2> sum = first + sum_of_pairs<W>(sums[r], std::make_index_sequence<W / 2>{});
    store<W / 2>(to[r] + offset, leaky_relu.of(sum));
  }
}

template <int W, typename T, typename S, int R, int V>
WELKIN_INLINE void segment_of(const T* const* left, const Segments& segments, const T* panel, int64_t stride, const float* bias,
                              float slope, S* const* to, int64_t offset) {
  if constexpr (V == kHalfVector) {
    segment_half_tile<W, S, R>(left, segments, panel, stride, bias, slope, to, offset);
  } else {
    segment_tile<W, T, S, R, V>(left, segments, panel, stride, bias, slope, to, offset);
  }
}

// Like add_rows_strip: the last tile is padded with rows whose results are unused.
template <int W, typename T, typename S, int V>
__attribute__((noinline)) void segment_strip(const T* const* left, const Segments& segments, int64_t count, const T* panel,
                                             int64_t stride, const float* bias, float slope, S* const* to, int64_t offset) {
  constexpr int kRows = strip_rows(W, V);
  int64_t row = 0;
  for (; row + kRows <= count; row += kRows) {
    segment_of<W, T, S, kRows, V>(left + row, segments, panel, stride, bias, slope, to + row, offset);
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
  segment_of<W, T, S, kRows, V>(last_left, segments, panel, stride, bias, slope, last_to, offset);
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
  if constexpr (kEndsWithHalf<W, T>) {
    const int64_t done = width / W * W;
    if (done < width) segment_strip<W, T, S, kHalfVector>(left, segments, count, panel + done, width, bias, slope, to, done);
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
  if constexpr (kEndsWithHalf<W, T>) {
    const int64_t done = width / W * W;
    if (done < width) outer_strip<W / 2, T, 1, Add>(left, right, count, done, sum, stride, rows);
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
    for_vectors<W>(rows, [&](auto lanes, int64_t c) { store<lanes>(to_left + c, load<lanes>(left[i] + c)); });
    for_vectors<W>(width, [&](auto lanes, int64_t c) { store<lanes>(to_right + c, load<lanes>(right[i] + c)); });
    left_at[i] = to_left;
    right_at[i] = to_right;
  }
  sum_outer<W, float>(left_at, right_at, count, sum, stride, rows, width, add);
}

template <int W, typename S>
constexpr ConvolutionKernel<float, S> kFloatConvolution{pack_floats<W, S>,     add_rows<W, float>,    segment_rows<W, float, S>,
                                                        sum_outer_gathered<W>, activate_floats<W, S>, gate_floats<W, S>,
                                                        scatter_line<W>};

}  // namespace
}  // namespace welkin::ops
