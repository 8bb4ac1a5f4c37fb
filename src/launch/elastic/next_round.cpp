// SPDX-License-Identifier: Apache-2.0
#include "launch/elastic/next_round.h"

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

constexpr std::array<std::string_view, 4> kSlotStates{"running", "waiting", "done", "gone"};

bool is_running(const SlotView& view) { return view.slot.state == Slot::State::Running; }
// True if the process is not there yet, but may still come.
bool may_come(const SlotView& view) { return view.slot.state == Slot::State::Waiting || (is_running(view) && !view.is_ready); }

// The members of the present round first, in their order, then those that wait.
std::vector<ProcessId> candidates(const JobView& job) {
  std::vector<ProcessId> ids;
  for (const ProcessId& member : job.members) {
    const bool runs = std::ranges::any_of(job.slots, [&](const SlotView& v) { return is_running(v) && v.slot.id == member; });
    if (runs) ids.push_back(member);
  }
  const std::vector<ProcessId> waiting = waiting_of(job);
  ids.insert(ids.end(), waiting.begin(), waiting.end());
  return ids;
}

// The largest number of ranks that so many processes allow; 0: none.
int64_t size_for(const JobView& job, size_t count) {
  int64_t best = 0;
  for (const int64_t size : job.sizes) {
    const bool fits = size >= job.limits.least && size <= job.limits.most && size <= static_cast<int64_t>(count);
    if (fits) best = std::max(best, size);
  }
  return best;
}

// The slot of the first lost member of the present round.
const SlotView* first_lost(const JobView& job) {
  for (const ProcessId& member : job.members) {
    const auto found = std::ranges::find_if(
        job.slots, [&](const SlotView& view) { return view.slot.id.node == member.node && view.slot.id.local == member.local; });
    if (found != job.slots.end() && (found->slot.id != member || !is_running(*found))) return &*found;
  }
  return nullptr;
}

Decision begin_round(const JobView& job, std::vector<ProcessId> ids, std::string why) {
  ids.resize(static_cast<size_t>(size_for(job, ids.size())));
  return {.kind = Decision::Kind::Start, .members = std::move(ids), .why = std::move(why)};
}

Decision give_up(const JobView& job, const SlotView* lost, size_t left) {
  std::vector<int64_t> sizes = job.sizes;
  std::ranges::sort(sizes);
  const std::string words = cat(lost != nullptr ? lost->slot.words : "a process did not come",
                                "; too few ranks are left: left=", left, ", elastic=", job.limits.least, ":", job.limits.most);
  const std::string what_next = job.round == 0 ? ". No step was done: start the job again"
                                               : cat(", sizes with which this run can go on=[", join(sizes, ", "),
                                                     "]. The newest checkpoint is whole: --resume continues from it");
  return {
      .kind = Decision::Kind::End, .why = words + what_next, .code = lost != nullptr ? std::max<int64_t>(1, lost->slot.code) : 1};
}

Decision first_round(const JobView& job, const Patience& patience) {
  if (std::ranges::all_of(job.slots, [](const SlotView& view) { return view.slot.state == Slot::State::Done; })) {
    return {.kind = Decision::Kind::End};
  }
  const std::vector<ProcessId> ids = candidates(job);
  const bool all_came = static_cast<int64_t>(ids.size()) >= job.limits.most;
  const bool nobody_comes = std::ranges::none_of(job.slots, may_come);
  if (!all_came && !nobody_comes && job.waiting_s < patience.join_s) return {};
  if (size_for(job, ids.size()) > 0) return begin_round(job, ids, "");
  if (!nobody_comes) return {};
  const auto lost = std::ranges::find_if(job.slots, [](const SlotView& view) { return !is_running(view); });
  return give_up(job, lost == job.slots.end() ? nullptr : &*lost, ids.size());
}

// True if every member has ended with an error of its own, which another start would meet again.
bool all_failed_alike(const JobView& job) {
  constexpr auto kCommCode = static_cast<int64_t>(ExitCode::Comm);
  constexpr int64_t kSignalCode = 128;
  return std::ranges::all_of(job.members, [&](const ProcessId& member) {
    return std::ranges::any_of(job.slots, [&](const SlotView& view) {
      const Slot& slot = view.slot;
      const bool has_ended =
          slot.id.node == member.node && slot.id.local == member.local && !(slot.id == member && is_running(view));
      return has_ended && slot.code > 0 && slot.code < kSignalCode && slot.code != kCommCode;
    });
  });
}

// The decision when a member is lost: the others go on at once, or wait for a new one.
Decision without_lost(const JobView& job, const SlotView& lost) {
  if (all_failed_alike(job)) return {.kind = Decision::Kind::End, .why = lost.slot.words, .code = lost.slot.code};
  const std::vector<ProcessId> ids = candidates(job);
  if (size_for(job, ids.size()) > 0) return begin_round(job, ids, lost.slot.words);
  if (std::ranges::none_of(job.slots, may_come)) return give_up(job, &lost, ids.size());
  return {.kind = job.is_closing ? Decision::Kind::Wait : Decision::Kind::Close};
}

const SlotView* view_of(const JobView& job, const ProcessId& id) {
  const auto found = std::ranges::find_if(job.slots, [&](const SlotView& view) { return view.slot.id == id; });
  return found == job.slots.end() ? nullptr : &*found;
}

// The decision when all members live.
Decision next_of_whole(const JobView& job, const Patience& patience) {
  const auto has_left = [&](const ProcessId& id) { return view_of(job, id)->has_left; };
  if (!job.is_closing) {
    if (std::ranges::any_of(job.members, has_left)) return {.kind = Decision::Kind::Close};
    const bool can_grow = size_for(job, candidates(job).size()) > static_cast<int64_t>(job.members.size());
    return {.kind = can_grow ? Decision::Kind::Request : Decision::Kind::Wait};
  }
  const std::vector<ProcessId> ids = candidates(job);
  if (std::ranges::all_of(job.members, has_left)) {
    const bool grows = ids.size() > job.members.size();
    return begin_round(job, ids, grows ? "a rank came back" : "an exchange between ranks had failed");
  }
  Decision wait;
  if (job.closing_s < patience.silent_s) return wait;
  for (const ProcessId& id : job.members) {
    if (!has_left(id) && !view_of(job, id)->is_seen) wait.kill.push_back(id);
  }
  return wait;
}

}  // namespace

std::string text_of(const Slot& slot) {
  std::string words = slot.words;
  std::ranges::replace(words, '\n', ' ');
  return cat(text_of(slot.id), " ", kSlotStates[static_cast<size_t>(slot.state)], " ", slot.code, " ", slot.is_fatal ? 1 : 0, " ",
             words);
}

std::optional<Slot> parse_slot(const std::string& text) {
  std::istringstream in(text);
  std::string id, state;
  int fatal = 0;
  Slot slot;
  if (!(in >> id >> state >> slot.code >> fatal)) return {};
  const auto parsed = parse_process_id(id);
  const auto found = std::ranges::find(kSlotStates, state);
  if (!parsed || found == kSlotStates.end()) return {};
  slot.id = *parsed;
  slot.state = static_cast<Slot::State>(found - kSlotStates.begin());
  slot.is_fatal = fatal != 0;
  std::getline(in >> std::ws, slot.words);
  return slot;
}

std::vector<ProcessId> waiting_of(const JobView& job) {
  std::vector<ProcessId> ids;
  for (const SlotView& view : job.slots) {
    const bool is_member = std::ranges::find(job.members, view.slot.id) != job.members.end();
    if (is_running(view) && view.is_ready && !is_member) ids.push_back(view.slot.id);
  }
  return ids;
}

Decision decide(const JobView& job, const Patience& patience) {
  for (const SlotView& view : job.slots) {
    const Slot& slot = view.slot;
    if (slot.is_fatal) {
      constexpr auto kInterruptedCode = static_cast<int64_t>(ExitCode::Interrupted);  // the ranks have reported it themselves
      return {.kind = Decision::Kind::End, .why = slot.code == kInterruptedCode ? "" : slot.words, .code = slot.code};
    }
    const bool was_member = std::ranges::find(job.members, slot.id) != job.members.end();
    if (slot.state == Slot::State::Done && was_member) return {.kind = Decision::Kind::End};
  }
  if (job.round == 0) return first_round(job, patience);
  const SlotView* lost = first_lost(job);
  return lost != nullptr ? without_lost(job, *lost) : next_of_whole(job, patience);
}

}  // namespace welkin::launch
