// SPDX-License-Identifier: Apache-2.0
// The backward pass of attention by AMX. Here keys are the rows of scores: then only one of the three resulting operands needs
// interleaved pairs of rows, and the gradients of keys and values come out as rows.
#include <cstring>

#include "ops/cpu/attention/attention_amx.h"
#include "ops/cpu/convolution/convolution_tiles.h"
#include "ops/cpu/elementwise/mask_loops.h"

namespace welkin::ops {
namespace {

constexpr int64_t kBackwardQueries = kAmxBackwardQueries;
constexpr int64_t kBackwardKeys = kAmxBackwardKeys;
constexpr int64_t kTransposedKeys = 1024;   // most keys whose sums one pass over the queries updates
constexpr int64_t kKeyBytes = 1024 * 1024;  // most bytes of these keys and their operands: half a second-level cache

struct BackwardScratch {
  static constexpr int64_t kRow = kBackwardQueries + kPad;
  static constexpr int64_t kKeyRow = kTransposedKeys + kPad;
  static constexpr int64_t kQueryRow = kBackwardQueries + 16;
  alignas(64) float scores[2][kPiece + kScorePad];
  alignas(64) float score_grads[2][kPiece + kScorePad];
  alignas(64) Bf16 weights[kBackwardKeys * kRow];               // [key][query]
  alignas(64) Bf16 grads[kBackwardKeys * kRow];                 // of the logits
  alignas(64) Bf16 grad_pairs[kBackwardKeys * kRow];            // [pair of keys][query][2]
  alignas(64) float factors[kBackwardKeys * kBackwardQueries];  // [key][query]

  // With two parts: the remainders of the three above.
  alignas(64) Bf16 small_weights[kBackwardKeys * kRow];
  alignas(64) Bf16 small_grads[kBackwardKeys * kRow];
  alignas(64) Bf16 small_grad_pairs[kBackwardKeys * kRow];

  // Behind the rest, for each dim: keys as [dim][key], both parts of them, and the queries' gradient as [dim][query].
  static constexpr int64_t kFloatsPerDim = kKeyRow + kQueryRow;
};

template <bool TwoParts>
class Backward {
 public:
  Backward(const AttentionBackward<Bf16>& work, float* scratch)
      : work_(work),
        keys_(work.keys),
        width_(work.keys.padded_dim),
        drops_(work.dropout.rule.threshold != 0),
        s_(*reinterpret_cast<BackwardScratch*>(scratch)) {}

  void run() {
    const Tiles tiles(kTileDepth);
    const int64_t per_key = (TwoParts ? 12 : 10) * width_ + 4 * keys_.row_dim;
    const int64_t most = kKeyBytes / per_key / kBackwardKeys * kBackwardKeys;
    const int64_t block = most > kTransposedKeys ? kTransposedKeys : most < kBackwardKeys ? kBackwardKeys : most;
    for (int64_t begin = work_.key_begin; begin < work_.key_end; begin += block) {
      const int64_t end = begin + block < work_.key_end ? begin + block : work_.key_end;
      const int64_t count = (end - begin + kBand - 1) / kBand * kBand;
      std::memset(work_.grad_key + begin * width_, 0, static_cast<size_t>(count * width_) * sizeof(float));
      std::memset(work_.grad_value + begin * width_, 0, static_cast<size_t>(count * width_) * sizeof(float));
      transpose_keys(keys_.key_steps, begin, count, keys_transposed_);
      if constexpr (TwoParts) transpose_keys(keys_.key_steps_small, begin, count, small_keys_transposed_);
      for (int64_t query = 0; query < work_.padded_queries; query += kBackwardQueries) {
        std::memset(query_grad_, 0, static_cast<size_t>(width_ * BackwardScratch::kQueryRow) * sizeof(float));
        for (int64_t key = 0; key < count; key += kBackwardKeys) {
          add_block(begin, key, count - key < kBackwardKeys ? count - key : kBackwardKeys, query);
        }
        put_query_gradient(query, begin == work_.key_begin);
      }
    }
  }

 private:
  int64_t queries_of(int64_t query) const {
    const int64_t left = work_.padded_queries - query;
    return left < kBackwardQueries ? left : kBackwardQueries;
  }

  // Transposes to rows of dims: 16 pairs of keys are words of 16 columns.
  void transpose_keys(const Bf16* steps, int64_t begin, int64_t count, Bf16* transposed) {
    for (int64_t key = 0; key < count; key += kBand) {
      for (int64_t d = 0; d < width_; d += 16) {
        Floats<16> words[16];
        for (int64_t p = 0; p < 16; ++p) {
          words[p] = reinterpret_cast<Floats<16>>(_mm512_loadu_si512(steps + (begin + key + 2 * p) * width_ + 2 * d));
        }
        transpose<16>(words);
        for (int64_t i = 0; i < 16; ++i) {
          _mm512_store_si512(transposed + (d + i) * BackwardScratch::kKeyRow + key, reinterpret_cast<__m512i>(words[i]));
        }
      }
    }
  }

  void put_query_gradient(int64_t query, bool first) {
    const int64_t queries = queries_of(query);
    float* grad = work_.grad_query + query * width_;
    for (int64_t q = 0; q < queries; q += 16) {
      for (int64_t d = 0; d < width_; d += 16) {
        Floats<16> words[16];
        for (int64_t i = 0; i < 16; ++i) words[i] = load<16>(query_grad_ + (d + i) * BackwardScratch::kQueryRow + q);
        transpose<16>(words);
        for (int64_t i = 0; i < 16; ++i) {
          float* to = grad + (q + i) * width_ + d;
          store<16>(to, first ? words[i] : load<16>(to) + words[i]);
        }
      }
    }
  }

  void fill_factors(int64_t begin, int64_t count, int64_t query, int64_t queries) {
    const WeightDropout& d = work_.dropout;
    for (int64_t q = 0; q < queries; q += 16) {
      alignas(64) float rows[16][kBackwardKeys];
      for (int64_t i = 0; i < 16; ++i) {
        mask_factors(d.rule, d.counter,
                     d.first + static_cast<uint64_t>(query + q + i) * d.row_stride + static_cast<uint64_t>(begin), count,
                     rows[i]);
      }
      for (int64_t key = 0; key < count; key += 16) {
        Floats<16> words[16];
        for (int64_t i = 0; i < 16; ++i) words[i] = load<16>(rows[i] + key);
        transpose<16>(words);
        for (int64_t i = 0; i < 16; ++i) store<16>(s_.factors + (key + i) * kBackwardQueries + q, words[i]);
      }
    }
  }

  WELKIN_INLINE ScorePiece scores_of(int64_t key, int64_t query, float* to) const {
    return piece_of(keys_.key_panels + key * keys_.row_dim, work_.query + query * keys_.row_dim, keys_.row_dim, to);
  }
  WELKIN_INLINE ScorePiece score_grads_of(int64_t key, int64_t query, float* to) const {
    return piece_of(keys_.value_panels + key * keys_.row_dim, work_.grad_out + query * keys_.row_dim, keys_.row_dim, to);
  }

  // The exponent of a weight is above 0 only by rounding, which matters for a coarse base.
  template <bool Coarse>
  static WELKIN_INLINE __m512 weight_of(__m512 score, __m512 scale, __m512 sum) {
    const __m512 exponent = relative_logit<Coarse>(score, scale, sum);
    return power_of_two(Coarse ? _mm512_maskz_min_ps(0xFFFF, exponent, _mm512_setzero_ps()) : exponent);
  }

  // Results for the pairs of keys of a piece: rows of weights and of gradients, and pairs of the latter.
  template <bool Drops, bool Coarse, int Quarter>
  WELKIN_INLINE void differentiate(int64_t row, int64_t column, int64_t query, int now) {
    const __m512 scale = _mm512_set1_ps(work_.scale);
    __m512 sums[2];
    __m512 means[2];
    for (int v = 0; v < 2; ++v) {
      sums[v] = _mm512_loadu_ps(work_.log2_sum + query + 16 * v);
      means[v] = _mm512_loadu_ps(work_.out_dot_grad + query + 16 * v);
    }
    for (int64_t r = Quarter * 4; r < Quarter * 4 + 4; ++r) {
      __m512i grads[2][2];
      __m512i small_grads[2][2];
      for (int64_t i = 0; i < 2; ++i) {
        const int64_t key = r + 16 * i;
        __m512i weights[2];
        __m512i small_weights[2];
        for (int v = 0; v < 2; ++v) {
          const int64_t at = key * kBand + 16 * v;
          __m512 weight = weight_of<Coarse>(_mm512_load_ps(s_.scores[now] + at), scale, sums[v]);
          __m512 grad = _mm512_load_ps(s_.score_grads[now] + at);
          if constexpr (Drops) {
            const __m512 factor = _mm512_load_ps(s_.factors + (row + key) * kBackwardQueries + column + 16 * v);
            grad = _mm512_mul_ps(weight, _mm512_fmsub_ps(grad, factor, means[v]));
            weight = _mm512_mul_ps(weight, factor);
          } else {
            grad = _mm512_mul_ps(weight, _mm512_sub_ps(grad, means[v]));
          }
          weights[v] = to_cut(weight);
          grads[i][v] = to_cut(grad);
          if constexpr (TwoParts) {
            small_weights[v] = to_cut(rest_of(weight, weights[v]));
            small_grads[i][v] = to_cut(rest_of(grad, grads[i][v]));
          }
        }
        const int64_t to = (row + key) * BackwardScratch::kRow + column;
        _mm512_store_si512(s_.weights + to, cut_pairs(weights[0], weights[1]));
        _mm512_store_si512(s_.grads + to, cut_pairs(grads[i][0], grads[i][1]));
        if constexpr (TwoParts) {
          _mm512_store_si512(s_.small_weights + to, cut_pairs(small_weights[0], small_weights[1]));
          _mm512_store_si512(s_.small_grads + to, cut_pairs(small_grads[i][0], small_grads[i][1]));
        }
      }
      const int64_t pair = (row / 2 + r) * 2 * BackwardScratch::kRow + 2 * column;
      _mm512_store_si512(s_.grad_pairs + pair, cut_pairs(grads[0][0], grads[1][0]));
      _mm512_store_si512(s_.grad_pairs + pair + 32, cut_pairs(grads[0][1], grads[1][1]));
      if constexpr (TwoParts) {
        _mm512_store_si512(s_.small_grad_pairs + pair, cut_pairs(small_grads[0][0], small_grads[1][0]));
        _mm512_store_si512(s_.small_grad_pairs + pair + 32, cut_pairs(small_grads[0][1], small_grads[1][1]));
      }
    }
  }

  template <bool Drops, bool Coarse, bool More>
  WELKIN_INLINE void differentiate_piece(int64_t row, int64_t column, int64_t query, int now, const ScorePiece& scores,
                                         const ScorePiece& grads) {
    if constexpr (More) score_quarter<0>(scores);
    if constexpr (More) score_quarter<1>(scores);
    differentiate<Drops, Coarse, 0>(row, column, query, now);
    if constexpr (More) score_quarter<2>(scores);
    if constexpr (More) score_quarter<3>(scores);
    differentiate<Drops, Coarse, 1>(row, column, query, now);
    if constexpr (More) score_quarter<0>(grads);
    if constexpr (More) score_quarter<1>(grads);
    differentiate<Drops, Coarse, 2>(row, column, query, now);
    if constexpr (More) score_quarter<2>(grads);
    if constexpr (More) score_quarter<3>(grads);
    differentiate<Drops, Coarse, 3>(row, column, query, now);
  }

  template <bool Drops, bool Coarse>
  __attribute__((noinline)) void differentiate_block(int64_t begin, int64_t count, int64_t query, int64_t queries) {
    tiles_see_memory();
    score_piece(scores_of(begin, query, s_.scores[0]));
    score_piece(score_grads_of(begin, query, s_.score_grads[0]));
    int now = 0;
    const int64_t pieces = count / kBand * (queries / kBand);
    const int64_t across = queries / kBand;
    const auto row_of = [&](int64_t piece) { return piece / across * kBand; };
    const auto column_of = [&](int64_t piece) { return piece % across * kBand; };
    for (int64_t p = 0; p < pieces; ++p, now ^= 1) {
      const int64_t row = row_of(p);
      const int64_t column = column_of(p);
      if (p + 1 < pieces) {
        differentiate_piece<Drops, Coarse, true>(
            row, column, query + column, now, scores_of(begin + row_of(p + 1), query + column_of(p + 1), s_.scores[now ^ 1]),
            score_grads_of(begin + row_of(p + 1), query + column_of(p + 1), s_.score_grads[now ^ 1]));
      } else {
        differentiate_piece<Drops, Coarse, false>(row, column, query + column, now, {}, {});
      }
    }
  }

  // Zeroes rows of keys behind the last, whose values may be infinite.
  void end_keys(int64_t valid, int64_t count) {
    for (int64_t key = valid; key < count; ++key) {
      end_key(key, s_.weights, s_.grads, s_.grad_pairs);
      if constexpr (TwoParts) end_key(key, s_.small_weights, s_.small_grads, s_.small_grad_pairs);
    }
  }
  static void end_key(int64_t key, Bf16* weights, Bf16* grads, Bf16* grad_pairs) {
    std::memset(weights + key * BackwardScratch::kRow, 0, kBackwardQueries * sizeof(Bf16));
    std::memset(grads + key * BackwardScratch::kRow, 0, kBackwardQueries * sizeof(Bf16));
    Bf16* pairs = grad_pairs + (key / kBand * 16 + key % 16) * 2 * BackwardScratch::kRow + key / 16 % 2;
    for (int64_t q = 0; q < kBackwardQueries; ++q) pairs[2 * q] = {};
  }

  // Adds keys [key, key + count) of the block that begins at `block`.
  void add_block(int64_t block, int64_t key, int64_t count, int64_t query) {
    const int64_t begin = block + key;
    const int64_t queries = queries_of(query);
    if (drops_) fill_factors(begin, count, query, queries);
    if (has_coarse<TwoParts>(work_.log2_sum + query, queries)) {
      drops_ ? differentiate_block<true, true>(begin, count, query, queries)
             : differentiate_block<false, true>(begin, count, query, queries);
    } else {
      drops_ ? differentiate_block<true, false>(begin, count, query, queries)
             : differentiate_block<false, false>(begin, count, query, queries);
    }
    end_keys(work_.key_end - begin, count);
    const int64_t step_row = width_ * 2 * kBf16;
    const auto small = [&](const Bf16* steps) { return TwoParts ? steps + query * width_ : nullptr; };
    for (int64_t row = 0; row < count; row += kBand) {
      const int64_t place = row * BackwardScratch::kRow;
      const TileOperands values{s_.weights + place,
                                BackwardScratch::kRow * kBf16,
                                work_.grad_out_steps + query * width_,
                                step_row,
                                queries / kTileDepth,
                                kTileDepth * kBf16,
                                kTileDepth / 2 * step_row};
      add_rows(matmuls_of<TwoParts>(values, s_.small_weights + place, small(work_.grad_out_steps_small)),
               work_.grad_value + (begin + row) * width_, width_, width_);
      TileOperands keys = values;
      keys.left = s_.grads + place;
      keys.right = work_.query_steps + query * width_;
      add_rows(matmuls_of<TwoParts>(keys, s_.small_grads + place, small(work_.query_steps_small)),
               work_.grad_key + (begin + row) * width_, width_, width_);
    }
    for (int64_t q = 0; q < queries; q += kBand) {
      const TileOperands large{keys_transposed_ + key,
                               BackwardScratch::kKeyRow * kBf16,
                               s_.grad_pairs + 2 * q,
                               2 * BackwardScratch::kRow * kBf16,
                               count / kTileDepth,
                               kTileDepth * kBf16,
                               kTileDepth / 2 * 2 * BackwardScratch::kRow * kBf16};
      add_columns(matmuls_of<TwoParts>(large, small_keys_transposed_ + key, s_.small_grad_pairs + 2 * q), query_grad_ + q,
                  BackwardScratch::kQueryRow, width_);
    }
  }

  const AttentionBackward<Bf16>& work_;
  const PackedKeys<Bf16>& keys_;
  int64_t width_;
  bool drops_;
  BackwardScratch& s_;
  Bf16* keys_transposed_ = reinterpret_cast<Bf16*>(&s_ + 1);
  Bf16* small_keys_transposed_ = keys_transposed_ + width_ * BackwardScratch::kKeyRow;
  float* query_grad_ = reinterpret_cast<float*>(small_keys_transposed_ + width_ * BackwardScratch::kKeyRow);
};

}  // namespace

void attention_backward_amx(const AttentionBackward<Bf16>& work, float* scratch) {
  work.keys.key_steps_small != nullptr ? Backward<true>(work, scratch).run() : Backward<false>(work, scratch).run();
}

int64_t attention_backward_amx_scratch(int64_t padded_dim) {
  return static_cast<int64_t>(sizeof(BackwardScratch) / sizeof(float)) + padded_dim * BackwardScratch::kFloatsPerDim;
}

}  // namespace welkin::ops
