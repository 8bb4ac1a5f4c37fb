// SPDX-License-Identifier: Apache-2.0
#include "parallel/shared_memory/rounds.h"

#include <stdexcept>

#include "core/text.h"

namespace welkin::parallel {

void Rounds::begin_call(uint64_t call) {
  if (is_broken_) throw std::runtime_error("an earlier call of the group has failed");
  call_ = call;
  call_ends_ = wait_.end_of_call();
}

std::byte* Rounds::begin() {
  for (int64_t other = 0; other < members(); ++other) {
    if (other != member()) await(other, round_);
  }
  return segment_.buffer(member(), round_++);
}

void Rounds::publish(uint64_t rounds) {
  segment_.note(member(), round_ - 1) = {.call = call_, .rounds = rounds};
  segment_.published_by(member()).raise(round_);
}

const std::byte* Rounds::of(int64_t member) {
  await(member, round_);
  if (segment_.note(member, round_ - 1).call != call_) {
    throw std::runtime_error(cat("the member at place ", member, " makes another call, or one of another size"));
  }
  return segment_.buffer(member, round_ - 1);
}

void Rounds::await(int64_t member, uint32_t published) const {
  wait_.await(segment_.published_by(member), published, member, call_ends_);
}

}  // namespace welkin::parallel
