// SPDX-License-Identifier: Apache-2.0
// How the members of a group take turns in their shared memory. In each round a member fills its buffer, publishes it, and reads
// the others'. Rounds use a member's two buffers in turn. Who has published round r has read all that it reads of round r - 1; so
// before round r is filled, all have published round r - 1, and nobody reads what stood in the buffer since round r - 2.
// Buffers of the round before may be read until this round is published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "parallel/shared_memory/member_wait.h"
#include "parallel/shared_memory/segment.h"

namespace welkin::parallel {

// Of one thread, but for stop(). After an exception no call follows: the others are told, and all later calls throw.
class Rounds {
 public:
  Rounds(Segment& segment, WaitLimits limits) : segment_(segment), wait_(segment, std::move(limits)) {}

  int64_t members() const { return segment_.shape().members; }
  int64_t member() const { return segment_.member(); }
  int64_t buffer_bytes() const { return segment_.shape().buffer_bytes; }

  // A call begins: what `run` throws is its error, and the group's last. `call` tells calls of other kinds and sizes apart.
  template <typename Run>
  void call(uint64_t call, Run run) {
    begin_call(call);
    try {
      run();
    } catch (...) {
      segment_.fail();
      is_broken_ = true;
      throw;
    }
  }

  // This member's buffer of the next round, to be filled.
  std::byte* begin();
  // The members may read it. `rounds`: what others are to know about the call.
  void publish(uint64_t rounds = 0);
  // What a member has published in this round. Waits for it. std::runtime_error where it makes another call.
  const std::byte* of(int64_t member);
  // The same of the round before, between begin() and publish().
  const std::byte* before(int64_t member) const { return segment_.buffer(member, round_ - 2); }
  uint64_t rounds_of(int64_t member) const { return segment_.note(member, round_ - 1).rounds; }

  // From any thread: a call under way ends with an error, and no other begins.
  void stop() { wait_.stop(); }

 private:
  void begin_call(uint64_t call);
  void await(int64_t member, uint32_t published) const;

  Segment& segment_;
  MemberWait wait_;
  uint32_t round_ = 0;  // those begun
  uint64_t call_ = 0;
  bool is_broken_ = false;
  MemberWait::Time call_ends_{};
};

}  // namespace welkin::parallel
