// SPDX-License-Identifier: Apache-2.0
#include "parallel/shared_memory/member_wait.h"

#include <stdexcept>
#include <string>

#include "core/text.h"

namespace welkin::parallel {
namespace {

// A sleeper is woken by what it waits for. After this long it looks whether that can still come, or whether others wait for it.
constexpr std::chrono::milliseconds kLookAfter{20}, kDoAfter{2};

}  // namespace

// What a member has left before it ended counts, so it is looked at once more.
void MemberWait::await(SharedWord& word, uint32_t count, int64_t member, Time end, const std::function<void()>& meanwhile) const {
  if (word.has_reached(count)) return;
  while (!word.wait(count, meanwhile ? kDoAfter : kLookAfter)) {
    const std::string why = reason_to_end(member, end);
    if (!why.empty() && !word.has_reached(count)) throw std::runtime_error(why);
    if (meanwhile) meanwhile();
  }
}

std::string MemberWait::reason_to_end(int64_t member, Time end) const {
  if (is_stopped_) return "the group has been closed";
  if (limits_.is_over && limits_.is_over()) return "the ranks have parted";
  if (segment_.has_failed(member)) return cat("Connection closed by peer: the member at place ", member, " has failed");
  if (segment_.is_gone(member)) return cat("Connection closed by peer: the member at place ", member, " is gone");
  if (std::chrono::steady_clock::now() < end) return {};
  return cat("Timed out waiting ", limits_.deadline.count(), "ms for the member at place ", member);
}

}  // namespace welkin::parallel
