// SPDX-License-Identifier: Apache-2.0
// The transform of one channel's values between file and model, applied while a row that was just copied is in the nearest
// cache. Allocates nothing: may run under bus_guard.h.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace welkin::data {

// In this order: sign, clip, log(1 + x / log), (x - mean) / std. The last is data::normalise (channel_statistics.h), bit for bit.
struct ChannelOp {
  bool negated = false;  // the component of a vector that was turned round
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  float log = 0;  // 0: no logarithm
  double mean = 0, std = 1;

  bool is_identity() const;
};

void apply(const ChannelOp& op, float* values, int64_t count);
// to[i] = op(from[i]) in one pass: a normalisation, the usual case, is done between load and store and bypasses the caches,
// which a batch does not fit. The same bits as a copy and apply(). `missing`: the value that becomes NaN.
void copy_applied(const ChannelOp& op, const float* from, float* to, int64_t count, std::optional<float> missing = {});

// The transform of an array. Empty members do nothing.
struct ArrayTransform {
  std::vector<double> clip;       // {low, high}
  std::vector<int64_t> log;       // channels
  std::vector<double> log_eps{};  // of each of these, log(1 + x / eps); empty: 1
  std::vector<double> mean, std;  // one per channel

  bool is_identity() const { return clip.empty() && log.empty() && mean.empty(); }
};

// One op per channel. ConfigError for a channel that does not exist, or an empty clip range; `name` is the array's.
std::vector<ChannelOp> channel_ops(const ArrayTransform& transform, int64_t channels, const char* name);

}  // namespace welkin::data
