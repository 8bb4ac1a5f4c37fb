// SPDX-License-Identifier: Apache-2.0
// The collectives of a group over its shared memory: plain memory in, plain memory out. Every member makes the same calls in the
// same order. Messages longer than a buffer go in pieces. They return when this member's part is done, and throw
// std::runtime_error (Rounds).
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/shared_memory/ordered_sum.h"
#include "parallel/shared_memory/rounds.h"

namespace welkin::parallel {

class SharedCalls {
 public:
  explicit SharedCalls(Rounds& rounds) : rounds_(rounds), parts_(static_cast<size_t>(rounds.members())) {}

  // `count` values of a type that has_ordered_reduction().
  void all_reduce(std::byte* values, int64_t count, c10::ScalarType type, OrderedReduction reduction);
  // `whole` has `count` values for each member; `part` gets `count`.
  void reduce_scatter(std::byte* part, const std::byte* whole, int64_t count, c10::ScalarType type, OrderedReduction reduction);
  // `part` has `bytes`; `whole` gets as many of each member. `part` may lie at its place in `whole`.
  void all_gather(std::byte* whole, const std::byte* part, int64_t bytes);
  void broadcast(std::byte* values, int64_t bytes, int64_t root);
  // Bytes to and from each member, which stand one after the other.
  void all_to_all(std::byte* out, const std::byte* in, const std::vector<int64_t>& out_bytes,
                  const std::vector<int64_t>& in_bytes);

 private:
  struct Sums;

  void reduce_at_once(const Sums& sums);
  void reduce_by_ranges(const Sums& sums);

  Rounds& rounds_;
  std::vector<const std::byte*> parts_;  // of each member, for one reduction
};

}  // namespace welkin::parallel
