// SPDX-License-Identifier: Apache-2.0
#include "data/sample/sampler.h"

#include <bit>

#include "core/error.h"
#include "core/philox.h"

namespace welkin::data {
namespace {

constexpr int kFeistelRounds = 6;

// A bijection of [0, 4^half_bits): a balanced Feistel network whose round function is one Philox block.
uint64_t feistel(uint64_t value, int half_bits, uint64_t key, uint64_t epoch) {
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t left = value >> half_bits;
  uint64_t right = value & mask;
  for (uint64_t round = 0; round < kFeistelRounds; ++round) {
    const PhiloxBlock word = philox(key, epoch, right * kFeistelRounds + round);
    const uint64_t next = left ^ (((uint64_t{word[1]} << 32) | word[0]) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits) | right;
}

// Cycle walking: applying the bijection until it lands in [0, size) is a bijection of [0, size); 4 rounds at most on average.
int64_t permuted(int64_t position, int64_t size, uint64_t key, int64_t epoch) {
  const auto limit = static_cast<uint64_t>(size);
  const int half_bits = (static_cast<int>(std::bit_width(limit - 1)) + 1) / 2;
  if (half_bits == 0) return 0;
  auto value = static_cast<uint64_t>(position);
  do {
    value = feistel(value, half_bits, key, static_cast<uint64_t>(epoch));
  } while (value >= limit);
  return static_cast<int64_t>(value);
}

}  // namespace

SampleKey Sampler::at(int64_t epoch, int64_t position) const {
  WELKIN_CHECK(position >= 0, "a position outside the epoch");
  if (choose_) return choose_(epoch, position);
  const bool shuffled = order_ == Order::Shuffled;
  const uint64_t draw_epoch = shuffled ? static_cast<uint64_t>(epoch) + 1 : 0;
  const PhiloxBlock draw = philox(stream_key(seed_, "sample draw"), draw_epoch, static_cast<uint64_t>(position));
  SampleKey key{position % size_, (uint64_t{draw[1]} << 32) | draw[0]};
  if (shuffled) key.index = permuted(key.index, size_, stream_key(seed_, "sample order"), epoch);
  return key;
}

}  // namespace welkin::data
