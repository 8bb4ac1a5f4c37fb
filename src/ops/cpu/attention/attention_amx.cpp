// SPDX-License-Identifier: Apache-2.0
// Attention of bfloat16 by AMX, or of float32 in two bfloat16 parts: matmuls by tiles, softmax and sums in float32. Weights are
// rounded for the second matmul only.
// This file has the forward pass, and the table.
#include "ops/cpu/attention/attention_amx.h"

#include <cstring>

#include "ops/cpu/elementwise/mask_loops.h"

namespace welkin::ops {
namespace {

constexpr int64_t kForwardQueries = 64;
constexpr int64_t kForwardKeys = 256;
constexpr int64_t kWeightRow = kForwardKeys + kPad;

struct ForwardScratch {
  alignas(64) float scores[2][kPiece + kScorePad];
  alignas(64) float block_sums[kBand][16];
  alignas(64) float sums[kForwardQueries][16];  // of powers relative to the base
  alignas(64) float bases[kForwardQueries];     // a logit of the row, to base two
  alignas(64) Bf16 weights[kBand * kWeightRow];
  alignas(64) float factors[kBand][kForwardKeys];
  alignas(64) Bf16 small_weights[kBand * kWeightRow];
};

// A sum of powers above this requires a larger base. The limit keeps the sums of values in range: with 2^14 keys of such
// weight, sums are finite for values up to 1e31.
constexpr float kLargeSum = 16384.0F;

template <bool TwoParts>
class Forward {
 public:
  Forward(const AttentionForward<Bf16>& work, float* scratch)
      : work_(work),
        keys_(work.keys),
        drops_(work.dropout.rule.threshold != 0),
        s_(*reinterpret_cast<ForwardScratch*>(scratch)) {}

  void run() {
    const Tiles tiles(kTileDepth);
    const int64_t width = keys_.padded_dim;
    std::memset(work_.out, 0, static_cast<size_t>(kForwardQueries * width) * sizeof(float));
    std::memset(s_.sums, 0, sizeof(s_.sums));
    for (float& base : s_.bases) base = kNoLogit;
    for (int64_t band = 0; band < kForwardQueries; band += kBand) raise_bases(band, 0, kBand);
    for (int64_t begin = 0; begin < keys_.num_keys; begin += kForwardKeys) {
      const int64_t left = (keys_.num_keys - begin + kBand - 1) / kBand * kBand;
      const int64_t count = left < kForwardKeys ? left : kForwardKeys;
      for (int64_t band = 0; band < kForwardQueries; band += kBand) add_block(band, begin, count);
    }
    for (int64_t r = 0; r < kForwardQueries; ++r) {
      const float sum = sum_of<16>(load<16>(s_.sums[r]));
      const float inverse = sum == 0 ? 0.0F : 1.0F / sum;  // all logits may be minus infinity: no weights then, as in aten
      for (int64_t d = 0; d < width; ++d) work_.out[r * width + d] *= inverse;
      work_.log2_sum[r] = sum == 0 ? kNoLogit : s_.bases[r] + std::log2(sum);
    }
  }

 private:
  WELKIN_INLINE ScorePiece piece(int64_t band, int64_t key, float* to) const {
    return piece_of(work_.query + band * keys_.row_dim, keys_.key_panels + key * keys_.panel_dim, keys_.row_dim, to);
  }

  // Sets the scores of keys behind the last to minus infinity.
  void end_keys(int64_t key, float* scores) const {
    const int64_t valid = keys_.num_keys - key;
    if (valid >= kBand) return;
    const uint32_t behind = ~uint32_t{0} << static_cast<uint32_t>(valid);
    const __m512 none = _mm512_set1_ps(-__builtin_inff());
    for (int64_t r = 0; r < kBand; ++r) {
      _mm512_mask_store_ps(scores + r * kBand, static_cast<__mmask16>(behind), none);
      _mm512_mask_store_ps(scores + r * kBand + 16, static_cast<__mmask16>(behind >> 16U), none);
    }
  }

  // Raises the base of each row to the largest logit of these keys, if that is greater.
  __attribute__((noinline)) void raise_bases(int64_t band, int64_t begin, int64_t count) {
    Floats<16> largest[kBand];
    for (Floats<16>& x : largest) x = broadcast<16>(-__builtin_inff());
    float* scores = s_.scores[0];
    for (int64_t key = begin; key < begin + count; key += kBand) {
      score_piece(piece(band, key, scores));
      end_keys(key, scores);
      for (int64_t r = 0; r < kBand; ++r) {
        for (int64_t k = 0; k < kBand; k += 16) {
          const Floats<16> x = load<16>(scores + r * kBand + k);
          largest[r] = largest[r] > x ? largest[r] : x;
        }
      }
    }
    for (int64_t r = 0; r < kBand; ++r) {
      const float base = largest_of<16>(largest[r]) * work_.scale;
      float& before = s_.bases[band + r];
      if (!(base > before)) continue;
      const float shrink = std::exp2(before - base);
      before = base;
      store<16>(s_.sums[band + r], load<16>(s_.sums[band + r]) * shrink);
      float* out = work_.out + (band + r) * keys_.padded_dim;
      for (int64_t d = 0; d < keys_.padded_dim; d += 16) store<16>(out + d, load<16>(out + d) * shrink);
    }
  }

  // Turns rows [Quarter * 8, ...) of a piece into weights.
  template <bool Drops, bool Coarse, int Quarter>
  WELKIN_INLINE void weigh(int64_t band, int64_t column, const float* scores) {
    const __m512 scale = _mm512_set1_ps(work_.scale);
    for (int64_t r = Quarter * 8; r < Quarter * 8 + 8; ++r) {
      const __m512 base = _mm512_set1_ps(s_.bases[band + r]);
      __m512 low = power_of_two(relative_logit<Coarse>(_mm512_load_ps(scores + r * kBand), scale, base));
      __m512 high = power_of_two(relative_logit<Coarse>(_mm512_load_ps(scores + r * kBand + 16), scale, base));
      _mm512_store_ps(s_.block_sums[r], _mm512_add_ps(_mm512_load_ps(s_.block_sums[r]), _mm512_add_ps(low, high)));
      if constexpr (Drops) {
        low = _mm512_mul_ps(low, _mm512_load_ps(s_.factors[r] + column));
        high = _mm512_mul_ps(high, _mm512_load_ps(s_.factors[r] + column + 16));
      }
      const __m512i cut_low = to_cut(low);
      const __m512i cut_high = to_cut(high);
      _mm512_store_si512(s_.weights + r * kWeightRow + column, cut_pairs(cut_low, cut_high));
      if constexpr (TwoParts) {
        _mm512_store_si512(s_.small_weights + r * kWeightRow + column, rest_pairs(low, cut_low, high, cut_high));
      }
    }
  }

  template <bool Drops, bool Coarse, bool More>
  WELKIN_INLINE void weigh_piece(int64_t band, int64_t column, const float* scores, const ScorePiece& next) {
    if constexpr (More) score_quarter<0>(next);
    weigh<Drops, Coarse, 0>(band, column, scores);
    if constexpr (More) score_quarter<1>(next);
    weigh<Drops, Coarse, 1>(band, column, scores);
    if constexpr (More) score_quarter<2>(next);
    weigh<Drops, Coarse, 2>(band, column, scores);
    if constexpr (More) score_quarter<3>(next);
    weigh<Drops, Coarse, 3>(band, column, scores);
  }

  template <bool Drops, bool Coarse>
  __attribute__((noinline)) void weigh_block(int64_t band, int64_t begin, int64_t count) {
    std::memset(s_.block_sums, 0, sizeof(s_.block_sums));
    tiles_see_memory();
    score_piece(piece(band, begin, s_.scores[0]));
    int64_t column = 0;
    int now = 0;
    for (; column + kBand < count; column += kBand, now ^= 1) {
      weigh_piece<Drops, Coarse, true>(band, column, s_.scores[now], piece(band, begin + column + kBand, s_.scores[now ^ 1]));
    }
    end_keys(begin + column, s_.scores[now]);
    weigh_piece<Drops, Coarse, false>(band, column, s_.scores[now], {});
  }

  // True if all sums of the block are small enough to be added.
  bool sums_are_small() const {
    __mmask16 small = 0xFFFF;
    for (const float* sums : s_.block_sums) {
      small &= _mm512_cmp_ps_mask(_mm512_load_ps(sums), _mm512_set1_ps(kLargeSum), _CMP_LT_OQ);
    }
    return small == 0xFFFF;
  }

  void weigh(int64_t band, int64_t begin, int64_t count) {
    if (has_coarse<TwoParts>(s_.bases + band, kBand)) {
      drops_ ? weigh_block<true, true>(band, begin, count) : weigh_block<false, true>(band, begin, count);
    } else {
      drops_ ? weigh_block<true, false>(band, begin, count) : weigh_block<false, false>(band, begin, count);
    }
  }

  void add_block(int64_t band, int64_t begin, int64_t count) {
    for (int64_t r = 0; drops_ && r < kBand; ++r) {
      const WeightDropout& d = work_.dropout;
      mask_factors(d.rule, d.counter, d.first + static_cast<uint64_t>(band + r) * d.row_stride + static_cast<uint64_t>(begin),
                   count, s_.factors[r]);
    }
    weigh(band, begin, count);
    if (!sums_are_small()) {
      raise_bases(band, begin, count);
      weigh(band, begin, count);
    }
    for (int64_t r = 0; r < kBand; ++r) {
      store<16>(s_.sums[band + r], load<16>(s_.sums[band + r]) + load<16>(s_.block_sums[r]));
    }
    const int64_t width = keys_.padded_dim;
    const TileOperands large{s_.weights,         kWeightRow * kBf16, keys_.value_steps + begin * width, width * 2 * kBf16,
                             count / kTileDepth, kTileDepth * kBf16, kTileDepth * width * kBf16};
    const Bf16* small_values = TwoParts ? keys_.value_steps_small + begin * width : nullptr;
    add_rows(matmuls_of<TwoParts>(large, s_.small_weights, small_values), work_.out + band * width, width, width);
  }

  const AttentionForward<Bf16>& work_;
  const PackedKeys<Bf16>& keys_;
  bool drops_;
  ForwardScratch& s_;
};

void attention_forward_amx(const AttentionForward<Bf16>& work, float* scratch) {
  work.keys.value_steps_small != nullptr ? Forward<true>(work, scratch).run() : Forward<false>(work, scratch).run();
}

int64_t scratch_floats(int64_t padded_dim) {
  constexpr int64_t kForward = sizeof(ForwardScratch) / sizeof(float);
  const int64_t backward = attention_backward_amx_scratch(padded_dim);
  return kForward > backward ? kForward : backward;
}

}  // namespace

const AttentionKernel<Bf16>& attention_kernel_amx() {
  static constexpr AttentionKernel<Bf16> kKernel{
      .panel_rows = kBand,
      .tile_multiple = kBand,
      .query_block = kForwardQueries,
      .key_block = kAmxBackwardKeys,
      .depth_multiple = kTileDepth,
      .pair_distance = kTileRows,
      .keys_on_the_left = true,
      .takes_two_parts = true,
      .scratch = scratch_floats,
      .forward = attention_forward_amx,
      .backward = attention_backward_amx,
  };
  return kKernel;
}

}  // namespace welkin::ops
