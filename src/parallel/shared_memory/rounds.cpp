// SPDX-License-Identifier: Apache-2.0
#include "parallel/shared_memory/rounds.h"

#include <stdexcept>
#include <string>

#include "core/text.h"

namespace welkin::parallel {
namespace {

// A sleeper is woken by what it waits for. After this long it looks whether that can still come.
constexpr std::chrono::milliseconds kLookAfter{20};

}  // namespace

void Rounds::begin_call(uint64_t call) {
  if (is_broken_) throw std::runtime_error("an earlier call of the group has failed");
  call_ = call;
  call_ends_ = std::chrono::steady_clock::now() + limits_.deadline;
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

// What a member has published before it ended counts, so it is looked at once more.
void Rounds::await(int64_t member, uint32_t published) const {
  SharedWord& word = segment_.published_by(member);
  if (word.has_reached(published)) return;
  while (!word.wait(published, kLookAfter)) {
    const std::string why = reason_to_end(member);
    if (!why.empty() && !word.has_reached(published)) throw std::runtime_error(why);
  }
}

std::string Rounds::reason_to_end(int64_t member) const {
  if (is_stopped_) return "the group has been closed";
  if (limits_.is_over && limits_.is_over()) return "the ranks have parted";
  if (segment_.has_failed(member)) return cat("Connection closed by peer: the member at place ", member, " has failed");
  if (segment_.is_gone(member)) return cat("Connection closed by peer: the member at place ", member, " is gone");
  if (std::chrono::steady_clock::now() < call_ends_) return {};
  return cat("Timed out waiting ", limits_.deadline.count(), "ms for the member at place ", member);
}

}  // namespace welkin::parallel
