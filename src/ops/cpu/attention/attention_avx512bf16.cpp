// SPDX-License-Identifier: Apache-2.0
// Attention of bfloat16: bfloat16 matmuls, softmax and sums in float32. Weights are rounded for the second matmul only.
#include "ops/cpu/attention/attention_tiles.h"
#include "ops/cpu/lanes/bf16_dot.h"

namespace welkin::ops {
namespace {

constexpr int64_t kTile = kQueryBlock * kKeyBlock;

template <>
struct TileWork<16, Bf16> {
  static Bf16* weights(float* scratch) { return reinterpret_cast<Bf16*>(scratch + 2 * kTile); }
  static WELKIN_INLINE void put(Bf16* to, Floats<16> x) { store_bf16(to, x); }

  // Takes two queries at a time: matmuls that sum over queries read interleaved pairs of them.
  static GradientTiles<Bf16> gradients(const AttentionBackward<Bf16>& work, int64_t query, int64_t key, int64_t count,
                                       int64_t valid, float* scratch) {
    const bool drops = work.dropout.rule.threshold != 0;
    DropRow drop[2];
    Bf16* weight_pairs = weights(scratch);
    Bf16* grad_pairs = weight_pairs + kTile;
    Bf16* grads = grad_pairs + kTile;
    for (int64_t r = 0; r < kQueryBlock; r += 2) {
      for (int64_t i = 0; i < 2 && drops; ++i) drop[i].fill(work.dropout, query + r + i, key, count);
      const bool coarse = is_coarse(work.log2_sum[query + r]) || is_coarse(work.log2_sum[query + r + 1]);
      const auto differentiate = [&]<bool Coarse>(std::bool_constant<Coarse> /*rule*/) {
        for (int64_t k = 0; k < count; k += 16) {
          Floats<16> weight[2];
          Floats<16> grad[2];
          for (int64_t i = 0; i < 2; ++i) {
            const float* scores = scratch + (r + i) * kKeyBlock + k;
            const Floats<16> factor = drops ? load<16>(drop[i].factors + k) : broadcast<16>(1.0F);
            weight[i] = exp2_lanes<16>(relative_logit<16, Coarse>(load<16>(scores), work.scale, work.log2_sum[query + r + i]));
            grad[i] = weight[i] * (load<16>(scores + kTile) * factor - work.out_dot_grad[query + r + i]);
            weight[i] *= factor;
            store_bf16(grads + (r + i) * kKeyBlock + k, grad[i]);
          }
          const int64_t pair = r * kKeyBlock + 2 * k;
          _mm512_storeu_si512(weight_pairs + pair, interleaved(to_bf16(weight[0]), to_bf16(weight[1])));
          _mm512_storeu_si512(grad_pairs + pair, interleaved(to_bf16(grad[0]), to_bf16(grad[1])));
        }
      };
      coarse ? differentiate(std::true_type()) : differentiate(std::false_type());
      for (int64_t k = valid; k < count; ++k) {
        std::memset(weight_pairs + r * kKeyBlock + 2 * k, 0, 2 * sizeof(Bf16));
        std::memset(grad_pairs + r * kKeyBlock + 2 * k, 0, 2 * sizeof(Bf16));
        grads[r * kKeyBlock + k] = grads[(r + 1) * kKeyBlock + k] = {};
      }
    }
    return {{weight_pairs, 2, kKeyBlock}, {grad_pairs, 2, kKeyBlock}, {grads, kKeyBlock, 1}};
  }
};

}  // namespace

const AttentionKernel<Bf16>& attention_kernel_avx512bf16() {
  static constexpr AttentionKernel<Bf16> kKernel{
      .panel_rows = 32,
      .tile_multiple = kTileMultiple,
      .query_block = kQueryBlock,
      .key_block = kKeyBlock,
      .depth_multiple = 2,
      .pair_distance = 1,
      .keys_on_the_left = false,
      .takes_two_parts = false,
      .scratch = [](int64_t) { return kScoreScratch + 3 * kTile / 2; },  // three tiles of bfloat16 besides
      .forward = attention_forward<16, Bf16>,
      .backward = attention_backward<16, Bf16>,
  };
  return kKernel;
}

}  // namespace welkin::ops
