// SPDX-License-Identifier: Apache-2.0
// The sample at each position of an epoch: a pure function of (seed, epoch, position), the same for any
// number of ranks and threads.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "data/sample/dataset.h"

namespace welkin::data {

enum class Order {
  Sequential,  // index = position, draw independent of the epoch: validation
  Shuffled,    // a keyed permutation of the epoch (Feistel network over Philox, no table)
};

class Sampler {
 public:
  Sampler(int64_t size, Order order, uint64_t seed) : size_(size), order_(order), seed_(seed) {}
  // The same sampler, but `choose` gives the sample of each place; it is pure and thread-safe.
  using Choice = std::function<SampleKey(int64_t epoch, int64_t position)>;
  Sampler choosing(Choice choose) const {
    Sampler other = *this;
    other.choose_ = std::move(choose);
    return other;
  }

  int64_t size() const { return size_; }
  // position >= 0. Beyond size the order repeats from the start, with draws of its own: padded epochs use them.
  SampleKey at(int64_t epoch, int64_t position) const;

 private:
  int64_t size_;
  Order order_;
  uint64_t seed_;
  Choice choose_;  // empty: by order and seed
};

}  // namespace welkin::data
