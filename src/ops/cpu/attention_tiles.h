// SPDX-License-Identifier: Apache-2.0
// Tiled attention for W lanes. Included by one file per instruction set; see ops/cpu/lanes.h for why all is unnamed.
#pragma once

#include <cmath>
#include <cstring>

#include "ops/cpu/attention_kernel.h"
#include "ops/cpu/lanes.h"

namespace welkin::ops {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// Keys of the tile that begins at `begin`, padded.
inline int64_t tile_keys(int64_t begin, int64_t end) {
  const int64_t keys = end - begin < kKeyBlock ? end - begin : kKeyBlock;
  return (keys + kKeyMultiple - 1) / kKeyMultiple * kKeyMultiple;
}

// scores (kQueryBlock, kKeyBlock) = rows times the panels from key `begin` on.
template <int W>
void score_tile(const float* rows, const float* panels, const PackedKeys& keys, int64_t begin, int64_t count, float* scores) {
  constexpr int64_t kPanel = 2 * W;
  for (int64_t k = 0; k < count; k += kPanel) {
    const float* panel = panels + (begin + k) * keys.head_dim;
    product_rows<W, 2, false>({rows, keys.padded_dim, 1}, {panel, kPanel}, {scores + k, kKeyBlock}, keys.head_dim, kQueryBlock);
  }
}

inline void fill_tail(float* scores, int64_t from, int64_t to, float value) {
  for (int64_t r = 0; r < kQueryBlock && from < to; ++r) {
    for (int64_t k = from; k < to; ++k) scores[r * kKeyBlock + k] = value;
  }
}

// Softmax of one row so far: the largest logit, and the sum of powers relative to it.
struct RunningRow {
  float largest = kMinusInfinity;
  float sum = 0;
};

// Turns the row's logits into powers relative to the largest so far and scales what was summed before.
template <int W>
WELKIN_INLINE void update_row(RunningRow& row, float* scores, int64_t count, float* out, int64_t width) {
  Floats<W> largest = load<W>(scores);
  for (int64_t k = W; k < count; k += W) {
    const Floats<W> x = load<W>(scores + k);
    largest = largest > x ? largest : x;
  }
  const float tile_largest = largest_of<W>(largest);
  if (tile_largest > row.largest) {
    const float shrink = std::exp2(row.largest - tile_largest);
    row.largest = tile_largest;
    row.sum *= shrink;
    for (int64_t d = 0; d < width; d += W) store<W>(out + d, load<W>(out + d) * shrink);
  }
  const Floats<W> base = broadcast<W>(row.largest);
  Floats<W> sum{};
  for (int64_t k = 0; k < count; k += W) {
    const Floats<W> power = exp2_lanes<W>(load<W>(scores + k) - base);
    store<W>(scores + k, power);
    sum += power;
  }
  row.sum += sum_of<W>(sum);
}

template <int W>
void attention_forward(const AttentionForward& work, float* scratch) {
  const PackedKeys& keys = work.keys;
  const int64_t width = keys.padded_dim;
  RunningRow rows[kQueryBlock];
  std::memset(work.out, 0, static_cast<size_t>(kQueryBlock * width) * sizeof(float));
  for (int64_t begin = 0; begin < keys.num_keys; begin += kKeyBlock) {
    const int64_t count = tile_keys(begin, keys.num_keys);
    score_tile<W>(work.query, keys.key_panels, keys, begin, count, scratch);
    fill_tail(scratch, keys.num_keys - begin, count, kMinusInfinity);
    for (int64_t r = 0; r < kQueryBlock; ++r) update_row<W>(rows[r], scratch + r * kKeyBlock, count, work.out + r * width, width);
    add_product<W>({scratch, kKeyBlock, 1}, {keys.value_rows + begin * width, width}, {work.out, width}, count, kQueryBlock,
                   width);
  }
  for (int64_t r = 0; r < kQueryBlock; ++r) {
    const float inverse = 1.0F / rows[r].sum;
    for (int64_t d = 0; d < width; ++d) work.out[r * width + d] *= inverse;
    work.log2_sum[r] = rows[r].largest + std::log2(rows[r].sum);
  }
}

// weights = 2^(logit - log2_sum); scores of the gradient become the gradient by the logits.
template <int W>
void gradient_tile(const AttentionBackward& work, int64_t query, int64_t count, float* weights, float* grads) {
  for (int64_t r = 0; r < kQueryBlock; ++r) {
    const Floats<W> log2_sum = broadcast<W>(work.log2_sum[query + r]);
    const Floats<W> mean = broadcast<W>(work.out_dot_grad[query + r]);
    for (int64_t k = r * kKeyBlock; k < r * kKeyBlock + count; k += W) {
      const Floats<W> weight = exp2_lanes<W>(load<W>(weights + k) - log2_sum);
      store<W>(weights + k, weight);
      store<W>(grads + k, weight * (load<W>(grads + k) - mean));
    }
  }
}

template <int W>
void attention_backward(const AttentionBackward& work, float* scratch) {
  const PackedKeys& keys = work.keys;
  const int64_t width = keys.padded_dim;
  float* weights = scratch;
  float* grads = scratch + kQueryBlock * kKeyBlock;
  for (int64_t begin = work.key_begin; begin < work.key_end; begin += kKeyBlock) {
    const int64_t count = tile_keys(begin, work.key_end);
    float* grad_key = work.grad_key + begin * width;
    float* grad_value = work.grad_value + begin * width;
    std::memset(grad_key, 0, static_cast<size_t>(count * width) * sizeof(float));
    std::memset(grad_value, 0, static_cast<size_t>(count * width) * sizeof(float));
    for (int64_t query = 0; query < work.padded_queries; query += kQueryBlock) {
      const float* query_rows = work.query + query * width;
      const float* grad_rows = work.grad_out + query * width;
      score_tile<W>(query_rows, keys.key_panels, keys, begin, count, weights);
      score_tile<W>(grad_rows, keys.value_panels, keys, begin, count, grads);
      gradient_tile<W>(work, query, count, weights, grads);
      fill_tail(weights, work.key_end - begin, count, 0.0F);
      fill_tail(grads, work.key_end - begin, count, 0.0F);
      add_product<W>({weights, 1, kKeyBlock}, {grad_rows, width}, {grad_value, width}, kQueryBlock, count, width);
      add_product<W>({grads, 1, kKeyBlock}, {query_rows, width}, {grad_key, width}, kQueryBlock, count, width);
      add_product<W>({grads, kKeyBlock, 1}, {keys.key_rows + begin * width, width}, {work.grad_query + query * width, width},
                     count, kQueryBlock, width);
    }
  }
}

}  // namespace
}  // namespace welkin::ops
