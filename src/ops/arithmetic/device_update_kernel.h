// SPDX-License-Identifier: Apache-2.0
// Arithmetic and traversal of the optimizer updates on a GPU; torch-free. constexpr, so that nvcc also compiles the functions
// for the device. A launch has a block per piece of a tensor. A block's threads share the piece in an order that depends only
// on its length, so every sum is reproducible.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/arithmetic/update_kernel.h"

namespace welkin::ops {

inline constexpr int kUpdateTensors = 192;  // per launch; the table is a kernel parameter, which has at most 32 kB
inline constexpr int kUpdateThreads = 256;
inline constexpr int64_t kUpdatePiece = 4096;  // elements per block: four times four for each thread
inline constexpr int64_t kNormPiece = 16384;   // the same for one array to read instead of four

// Tensors of one launch as pieces of `piece_length` elements; `first` and `second` may be null.
struct UpdateTable {
  int64_t piece_length = kUpdatePiece;
  int32_t num_tensors = 0;
  int32_t first_piece[kUpdateTensors + 1] = {};  // of each tensor, and one past the last
  bool wide[kUpdateTensors] = {};                // all its arrays are aligned to 16 bytes
  int64_t count[kUpdateTensors] = {};
  float* value[kUpdateTensors] = {};
  const float* gradient[kUpdateTensors] = {};
  float* first[kUpdateTensors] = {};
  float* second[kUpdateTensors] = {};
};
static_assert(sizeof(UpdateTable) < 16384);

// The piece of a block.
struct UpdatePiece {
  int64_t count = 0;
  bool wide = false;
  float* value = nullptr;
  const float* gradient = nullptr;
  float* first = nullptr;
  float* second = nullptr;
};

// The tensor whose pieces include `piece`, in [0, first_piece[num_tensors]).
constexpr int32_t tensor_of_piece(const UpdateTable& table, int32_t piece) {
  int32_t low = 0, high = table.num_tensors - 1;
  while (low < high) {
    const int32_t middle = (low + high + 1) / 2;
    if (table.first_piece[middle] <= piece) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

template <typename Number>
constexpr Number* moved_by(Number* array, int64_t elements) {
  return array == nullptr ? nullptr : array + elements;
}

constexpr UpdatePiece piece_at(const UpdateTable& table, int32_t piece) {
  const int32_t t = tensor_of_piece(table, piece);
  const int64_t begin = (piece - table.first_piece[t]) * table.piece_length;
  const int64_t left = table.count[t] - begin;
  return {.count = left < table.piece_length ? left : table.piece_length,
          .wide = table.wide[t],
          .value = moved_by(table.value[t], begin),
          .gradient = moved_by(table.gradient[t], begin),
          .first = moved_by(table.first[t], begin),
          .second = moved_by(table.second[t], begin)};
}

// Settings that the host knows; rate, step count and gradient scale are read on the device.
struct AdamSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0;
  bool decoupled = false;  // AdamW: decay acts on the weights, not on the gradient
};
struct SgdSettings {
  double momentum = 0, decay = 0;
};

// A rule that one thread computes from the numbers on the device, once per launch.
template <typename Rule>
struct PreparedRule {
  Rule rule{};
  bool skip = false;  // a gradient is not finite: change nothing
};

// Templates, since not every compiler accepts their calls in a constant expression.
template <typename Real>
constexpr AdamRule adam_rule(const AdamSettings& settings, Real rate, Real steps, float gradient_scale) {
  const double shrink = settings.decoupled ? static_cast<double>(rate) * settings.decay : 0.0;
  return {.gradient_scale = gradient_scale,
          .decay = static_cast<float>(settings.decoupled ? 0.0 : settings.decay),
          .keep = static_cast<float>(1 - shrink),
          .average_share = static_cast<float>(1 - settings.beta1),
          .square_keep = static_cast<float>(settings.beta2),
          .square_share = static_cast<float>(1 - settings.beta2),
          .step = static_cast<float>(rate / (1 - pow(settings.beta1, static_cast<double>(steps)))),
          .root_factor = static_cast<float>(1 / sqrt(1 - pow(settings.beta2, static_cast<double>(steps)))),
          .epsilon = static_cast<float>(settings.epsilon)};
}

constexpr SgdRule sgd_rule(const SgdSettings& settings, float rate, float gradient_scale) {
  return {.gradient_scale = gradient_scale,
          .decay = static_cast<float>(settings.decay),
          .momentum = static_cast<float>(settings.momentum),
          .rate = rate};
}

template <typename Real>
constexpr PreparedRule<AdamRule> prepared_rule(const AdamSettings& settings, Real rate, Real steps, Real gradient_scale,
                                               Real found_inf) {
  return {.rule = adam_rule(settings, rate, steps, gradient_scale), .skip = found_inf != 0};
}

constexpr PreparedRule<SgdRule> prepared_rule(const SgdSettings& settings, float rate, float gradient_scale, float found_inf) {
  return {.rule = sgd_rule(settings, rate, gradient_scale), .skip = found_inf != 0};
}

// Updates element i of the arrays. Real is float; a template for the same reason.
template <typename Real>
constexpr void update_element(const AdamRule& rule, Real& value, Real gradient, Real& average, Real& square) {
  const Real g = rule.gradient_scale * gradient + rule.decay * value;
  average = average + rule.average_share * (g - average);
  square = rule.square_keep * square + rule.square_share * g * g;
  value = rule.keep * value - rule.step * (average / (sqrtf(square) * rule.root_factor + rule.epsilon));
}

template <typename Real>
constexpr void update_element(const SgdRule& rule, Real& value, Real gradient, Real& velocity, Real& /*none*/) {
  velocity = rule.momentum * velocity + (rule.gradient_scale * gradient + rule.decay * value);
  value = value - rule.rate * velocity;
}

// Sixteen bytes in one access.
struct alignas(16) FourFloats {
  float lane[4] = {};
};

template <typename Number>
constexpr FourFloats load_four(const Number* from) {
  return *static_cast<const FourFloats*>(static_cast<const void*>(from));
}
template <typename Number>
constexpr void store_four(const FourFloats& values, Number* to) {
  *static_cast<FourFloats*>(static_cast<void*>(to)) = values;
}

constexpr bool has_second(const AdamRule& /*rule*/) { return true; }
constexpr bool has_second(const SgdRule& /*rule*/) { return false; }

template <typename Rule>
constexpr void update_four(const Rule& rule, const UpdatePiece& piece, int64_t at) {
  FourFloats value = load_four(piece.value + at), first = load_four(piece.first + at), second{};
  const FourFloats gradient = load_four(piece.gradient + at);
  if (has_second(rule)) second = load_four(piece.second + at);
  for (int i = 0; i < 4; ++i) update_element(rule, value.lane[i], gradient.lane[i], first.lane[i], second.lane[i]);
  store_four(value, piece.value + at);
  store_four(first, piece.first + at);
  if (has_second(rule)) store_four(second, piece.second + at);
}

template <typename Rule>
constexpr void update_one(const Rule& rule, const UpdatePiece& piece, int64_t at) {
  float none = 0;
  update_element(rule, piece.value[at], piece.gradient[at], piece.first[at], has_second(rule) ? piece.second[at] : none);
}

// The part of thread `thread` of `threads`.
template <typename Rule>
constexpr void update_share(const PreparedRule<Rule>& prepared, const UpdatePiece& piece, int thread, int threads) {
  if (prepared.skip) return;
  const Rule rule = prepared.rule;  // a local copy, so that stores cannot alias it
  const int64_t fours = piece.wide ? piece.count / 4 : 0;
  for (int64_t i = thread; i < fours; i += threads) update_four(rule, piece, 4 * i);
  for (int64_t i = 4 * fours + thread; i < piece.count; i += threads) update_one(rule, piece, i);
}

// The float sum has at most 67 squares for kNormPiece and kUpdateThreads.
constexpr double square_share(const UpdatePiece& piece, int thread, int threads) {
  const int64_t fours = piece.wide ? piece.count / 4 : 0;
  float sum = 0;
  for (int64_t i = thread; i < fours; i += threads) {
    const FourFloats four = load_four(piece.gradient + 4 * i);
    for (int lane = 0; lane < 4; ++lane) sum += four.lane[lane] * four.lane[lane];
  }
  for (int64_t i = 4 * fours + thread; i < piece.count; i += threads) {
    sum += piece.gradient[i] * piece.gradient[i];
  }
  return static_cast<double>(sum);
}

// One step of a sum over `threads` numbers (a power of two) with half of the threads: width = threads / 2, ..., 2, 1. All
// threads must finish a step before the next. sums[0] is the total.
constexpr void add_halves(double* sums, int thread, int width) {
  if (thread < width) sums[thread] += sums[thread + width];
}

// A thread's part of the sum over the blocks' sums.
constexpr double partial_share(const double* partials, int64_t count, int thread, int threads) {
  double sum = 0;
  for (int64_t i = thread; i < count; i += threads) sum += partials[i];
  return sum;
}

}  // namespace welkin::ops
