// SPDX-License-Identifier: Apache-2.0
// Tiled attention for W lanes. Included by one file per instruction set; see ops/cpu/lanes/lanes.h for the unnamed namespace.
#pragma once

#include <cmath>
#include <cstring>
#include <type_traits>

#include "ops/cpu/attention/attention_kernel.h"
#include "ops/cpu/elementwise/mask_loops.h"
#include "ops/cpu/lanes/gemm_microkernel.h"

namespace welkin::ops {
namespace {

constexpr int64_t kQueryBlock = 48;  // queries of one tile: a multiple of every tile's rows
constexpr int64_t kKeyBlock = 192;   // keys of one tile
constexpr int64_t kTileMultiple = 96;
constexpr int64_t kScoreScratch = 2 * kQueryBlock * kKeyBlock;  // floats: scores, and their gradients

constexpr float kMinusInfinity = -__builtin_inff();

// Padded number of keys of the tile that begins at `begin`.
inline int64_t tile_keys(int64_t begin, int64_t end, int64_t multiple) {
  const int64_t keys = end - begin < kKeyBlock ? end - begin : kKeyBlock;
  return (keys + multiple - 1) / multiple * multiple;
}

// scores (kQueryBlock, kKeyBlock) = rows times the panels from key `begin` on.
template <int W, typename T>
void score_tile(const T* rows, const T* panels, const PackedKeys<T>& keys, int64_t begin, int64_t count, float* scores) {
  constexpr int64_t kPanel = 2 * W;
  for (int64_t k = 0; k < count; k += kPanel) {
    const T* panel = panels + (begin + k) * keys.panel_dim;
    matmul_rows<W, T, 2, false>({rows, keys.row_dim, 1}, {panel, kPanel}, {scores + k, kKeyBlock}, keys.panel_dim, kQueryBlock);
  }
}

inline void fill_tail(float* scores, int64_t from, int64_t to, float value) {
  for (int64_t r = 0; r < kQueryBlock && from < to; ++r) {
    for (int64_t k = from; k < to; ++k) scores[r * kKeyBlock + k] = value;
  }
}

// Dropout factors of one query for the keys of one tile; not computed without dropout.
struct DropRow {
  alignas(64) float factors[kKeyBlock];

  WELKIN_INLINE void fill(const WeightDropout& dropout, int64_t query, int64_t key, int64_t count) {
    const uint64_t first = dropout.first + static_cast<uint64_t>(query) * dropout.row_stride + static_cast<uint64_t>(key);
    mask_factors(dropout.rule, dropout.counter, first, count, factors);
  }
};

// Parts that differ between operand types: place and type of weights, and the tiles of a backward pass.
template <int W, typename T>
struct TileWork;

// Softmax of one row so far: the largest logit, and the sum of powers relative to it.
struct RunningRow {
  float largest = kNoLogit;
  float sum = 0;
};

// The exact logit differs from a rounded base by up to half a unit in the base's last place, less than 2^-17 below this.
// Beyond, logits are rounded before the base is subtracted, so that the largest one becomes 0 and its weight 1.
constexpr float kCoarseBase = 128;
WELKIN_INLINE bool is_coarse(float base) { return !(std::abs(base) < kCoarseBase); }

template <int W, bool Coarse>
WELKIN_INLINE Floats<W> relative_logit(Floats<W> score, float scale, float base) {
  const Floats<W> logit = score * scale;
  return (Coarse ? rounded<W>(logit) : logit) - base;
}

// Turns the row's matmuls into powers relative to the largest so far, as weights, and rescales earlier sums. The sum is
// over all powers; weights are powers times `factors` (null: none).
template <int W, typename T>
WELKIN_INLINE void update_row(RunningRow& row, float scale, const float* scores, const float* factors, T* weights, int64_t count,
                              float* out, int64_t width) {
  Floats<W> largest = load<W>(scores);
  for (int64_t k = W; k < count; k += W) {
    const Floats<W> x = load<W>(scores + k);
    largest = largest > x ? largest : x;
  }
  const float tile_largest = largest_of<W>(largest) * scale;
  if (tile_largest > row.largest) {
    const float shrink = std::exp2(row.largest - tile_largest);
    row.largest = tile_largest;
    row.sum *= shrink;
    for (int64_t d = 0; d < width; d += W) store<W>(out + d, load<W>(out + d) * shrink);
  }
  Floats<W> sum{};
  const auto weigh = [&]<bool Coarse>(std::bool_constant<Coarse> /*rule*/) {
    for (int64_t k = 0; k < count; k += W) {
      const Floats<W> power = exp2_lanes<W>(relative_logit<W, Coarse>(load<W>(scores + k), scale, row.largest));
      TileWork<W, T>::put(weights + k, factors == nullptr ? power : power * load<W>(factors + k));
      sum += power;
    }
  };
  is_coarse(row.largest) ? weigh(std::true_type()) : weigh(std::false_type());
  row.sum += sum_of<W>(sum);
}

template <int W, typename T>
void attention_forward(const AttentionForward<T>& work, float* scratch) {
  const PackedKeys<T>& keys = work.keys;
  const int64_t width = keys.padded_dim;
  T* weights = TileWork<W, T>::weights(scratch);
  const bool drops = work.dropout.rule.threshold != 0;
  RunningRow rows[kQueryBlock];
  DropRow drop;
  std::memset(work.out, 0, static_cast<size_t>(kQueryBlock * width) * sizeof(float));
  for (int64_t begin = 0; begin < keys.num_keys; begin += kKeyBlock) {
    const int64_t count = tile_keys(begin, keys.num_keys, keys.multiple);
    score_tile<W, T>(work.query, keys.key_panels, keys, begin, count, scratch);
    fill_tail(scratch, keys.num_keys - begin, count, kMinusInfinity);
    for (int64_t r = 0; r < kQueryBlock; ++r) {
      if (drops) drop.fill(work.dropout, r, begin, count);
      update_row<W, T>(rows[r], work.scale, scratch + r * kKeyBlock, drops ? drop.factors : nullptr, weights + r * kKeyBlock,
                       count, work.out + r * width, width);
    }
    add_matmul<W, T>({weights, kKeyBlock, 1}, {keys.value_steps + begin * width, width}, {work.out, width}, count, kQueryBlock,
                     width);
  }
  for (int64_t r = 0; r < kQueryBlock; ++r) {
    // All logits may be minus infinity: then all weights are zero, as in aten.
    const float inverse = rows[r].largest == kNoLogit ? 0.0F : 1.0F / rows[r].sum;
    for (int64_t d = 0; d < width; ++d) work.out[r * width + d] *= inverse;
    work.log2_sum[r] = rows[r].largest + std::log2(rows[r].sum);
  }
}

// The tiles of a backward pass in the layout of the matmuls: weights and logit gradient transposed (keys are
// rows), and the logit gradient untransposed.
template <typename T>
struct GradientTiles {
  Left<T> weights_transposed, grads_transposed, grads;
};

template <int W>
struct TileWork<W, float> {
  static float* weights(float* scratch) { return scratch; }  // in place of the matmuls
  static WELKIN_INLINE void put(float* to, Floats<W> x) { store<W>(to, x); }

  // From the matmuls in two tiles of scratch: weights = 2^(logit - log2_sum), with dropout, and the logit gradient;
  // both zero from key `valid` on. The tile's keys begin at `key`.
  static GradientTiles<float> gradients(const AttentionBackward<float>& work, int64_t query, int64_t key, int64_t count,
                                        int64_t valid, float* scratch) {
    const bool drops = work.dropout.rule.threshold != 0;
    DropRow drop;
    float* weights = scratch;
    float* grads = scratch + kQueryBlock * kKeyBlock;
    for (int64_t r = 0; r < kQueryBlock; ++r) {
      const float log2_sum = work.log2_sum[query + r];
      const Floats<W> mean = broadcast<W>(work.out_dot_grad[query + r]);
      if (drops) drop.fill(work.dropout, query + r, key, count);
      const auto differentiate = [&]<bool Coarse>(std::bool_constant<Coarse> /*rule*/) {
        for (int64_t k = 0; k < count; k += W) {
          float* to = weights + r * kKeyBlock + k;
          float* grad = grads + r * kKeyBlock + k;
          const Floats<W> weight = exp2_lanes<W>(relative_logit<W, Coarse>(load<W>(to), work.scale, log2_sum));
          const Floats<W> factor = drops ? load<W>(drop.factors + k) : broadcast<W>(1.0F);
          store<W>(to, weight * factor);
          store<W>(grad, weight * (load<W>(grad) * factor - mean));
        }
      };
      is_coarse(log2_sum) ? differentiate(std::true_type()) : differentiate(std::false_type());
    }
    fill_tail(weights, valid, count, 0.0F);
    fill_tail(grads, valid, count, 0.0F);
    return {{weights, 1, kKeyBlock}, {grads, 1, kKeyBlock}, {grads, kKeyBlock, 1}};
  }
};

template <int W, typename T>
void attention_backward(const AttentionBackward<T>& work, float* scratch) {
  const PackedKeys<T>& keys = work.keys;
  const int64_t width = keys.padded_dim;
  std::memset(work.grad_query, 0, static_cast<size_t>(work.padded_queries * width) * sizeof(float));
  for (int64_t begin = work.key_begin; begin < work.key_end; begin += kKeyBlock) {
    const int64_t count = tile_keys(begin, work.key_end, keys.multiple);
    float* grad_key = work.grad_key + begin * width;
    float* grad_value = work.grad_value + begin * width;
    std::memset(grad_key, 0, static_cast<size_t>(count * width) * sizeof(float));
    std::memset(grad_value, 0, static_cast<size_t>(count * width) * sizeof(float));
    for (int64_t query = 0; query < work.padded_queries; query += kQueryBlock) {
      score_tile<W, T>(work.query + query * keys.row_dim, keys.key_panels, keys, begin, count, scratch);
      score_tile<W, T>(work.grad_out + query * keys.row_dim, keys.value_panels, keys, begin, count,
                       scratch + kQueryBlock * kKeyBlock);
      const GradientTiles<T> tiles = TileWork<W, T>::gradients(work, query, begin, count, work.key_end - begin, scratch);
      add_matmul<W, T>(tiles.weights_transposed, {work.grad_out_steps + query * width, width}, {grad_value, width}, kQueryBlock,
                       count, width);
      add_matmul<W, T>(tiles.grads_transposed, {work.query_steps + query * width, width}, {grad_key, width}, kQueryBlock, count,
                       width);
      add_matmul<W, T>(tiles.grads, {keys.key_steps + begin * width, width}, {work.grad_query + query * width, width}, count,
                       kQueryBlock, width);
    }
  }
}

template <int W>
constexpr AttentionKernel<float> kFloatAttention{
    .panel_rows = 2 * W,
    .tile_multiple = kTileMultiple,
    .query_block = kQueryBlock,
    .key_block = kKeyBlock,
    .depth_multiple = 1,
    .pair_distance = 0,
    .keys_on_the_left = false,
    .takes_two_parts = false,
    .scratch = [](int64_t) { return kScoreScratch; },
    .forward = attention_forward<W, float>,
    .backward = attention_backward<W, float>,
};

}  // namespace
}  // namespace welkin::ops
