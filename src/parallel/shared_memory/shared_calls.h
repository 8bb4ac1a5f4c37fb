// SPDX-License-Identifier: Apache-2.0
// The collectives of a group over its shared memory: plain memory in, plain memory out. Every member makes the same calls in the
// same order. Messages longer than a buffer go in pieces, or are read from the members' own memory. They return when this
// member's part is done, and throw std::runtime_error (Rounds).
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "parallel/shared_memory/ordered_sum.h"
#include "parallel/shared_memory/rounds.h"

namespace welkin::parallel {

class SharedCalls {
 public:
  // `processes`: those of the members, who may read each other's memory (member_memory.h); empty where they may not.
  explicit SharedCalls(Rounds& rounds, std::vector<int64_t> processes = {})
      : rounds_(rounds), processes_(std::move(processes)), parts_(static_cast<size_t>(rounds.members())) {}

  // Bytes of all members from which sums and gathers read the members' own memory.
  static constexpr int64_t kLeastRead = int64_t{1} << 20;

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
  bool reduce_by_reading(const Sums& sums);
  bool reads(int64_t bytes) const { return !processes_.empty() && bytes >= kLeastRead; }
  // Runs `work` while the members read each other's memory, this one's at `own`. False if that of a member cannot be read.
  bool with_addresses(const std::byte* own, int64_t bytes, const std::function<void()>& work);
  void await_all();
  void read(int64_t member, int64_t offset, std::byte* to, int64_t bytes);
  // `out`, as long as `length`, becomes the sum of what all members have at `offset`; `own` has this member's there.
  void sum_read(const Sums& sums, std::byte* out, const std::byte* own, int64_t offset, int64_t length);

  Rounds& rounds_;
  std::vector<int64_t> processes_;
  std::vector<uint64_t> addresses_;      // of each member, during a call
  std::vector<std::byte> read_;          // pieces of the other members
  std::vector<const std::byte*> parts_;  // of each member, for one reduction
};

}  // namespace welkin::parallel
