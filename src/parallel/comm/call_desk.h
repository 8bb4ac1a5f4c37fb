// SPDX-License-Identifier: Apache-2.0
// What surrounds every collective of a group: its number, its entry in the flight recorder, its span, and, when it fails, one
// sentence about the other ranks: which made another call, stopped and why, wait in which call, compute, or are silent: ended, or
// stopped from outside. Ranks tell each other through a notice board (the rendezvous store), which works without any collective;
// for a rank that waits or computes its watch answers (call_watch.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observe/timeline/span.h"
#include "parallel/comm/flight_recorder.h"

namespace welkin::parallel {

// Short texts that all ranks can read. No call waits for another rank.
class NoticeBoard {
 public:
  virtual ~NoticeBoard() = default;
  virtual void post(const std::string& key, const std::string& text) = 0;
  virtual void post_first(const std::string& key, const std::string& text) = 0;  // unless somebody has
  virtual std::optional<std::string> read(const std::string& key) = 0;
};

// The services of a process, shared by the desks of its groups.
struct CallServices {
  int64_t rank = 0;
  std::chrono::milliseconds deadline{0};  // of one collective
  std::chrono::milliseconds grace{3000};  // for the others' notices after a failure
  std::shared_ptr<NoticeBoard> board;
  std::shared_ptr<FlightRecorder> recorder;
  const observe::Tracer* tracer = nullptr;
};

// What a back end says, for people: its first line, without the place in its sources and without its stack.
std::string reason_of(const std::string& said);

// What a rank that stops for a reason of its own posts, so that the others' failures can name it: the first of all, and each.
inline constexpr const char* kStoppedNotice = "stopped";
std::string left_notice(int64_t rank);
// Posted with the first failure anywhere: from then on every rank's watch posts what the rank does.
inline constexpr const char* kAlarmNotice = "alarm";
std::string doing_notice(int64_t rank);
// What stands there: "in " and the text of the oldest call under way, or "out " and a sentence; then a line with the seconds.
std::string doing_text(const FlightRecorder& recorder);

class CallDesk {
 public:
  CallDesk(std::shared_ptr<const CallServices> services, std::string group_text, std::vector<int64_t> ranks);

  const CallServices& services() const { return *services_; }
  int64_t next_sequence() const { return sequence_ + 1; }
  // A new call: its ticket in the recorder.
  int64_t begin(const char* name, std::string shape, int64_t bytes = 0);
  void end(int64_t ticket) { services_->recorder->finish(ticket, CallState::Done); }
  // Throws CommError about the call of this ticket.
  [[noreturn]] void fail(int64_t ticket, const std::string& reason);

 private:
  // What the board has about a member.
  struct Member {
    int64_t rank = 0;
    std::optional<std::string> failed;  // the call in which it failed, of this group
    std::optional<std::string> left;    // it stopped, and why
    std::optional<std::string> doing;   // its watch's answer
    bool is_known() const { return failed || left || doing; }
  };
  std::string notice_key(const char* key, int64_t rank) const;
  std::vector<Member> ask_members() const;
  std::vector<Member> await_members() const;
  void await_readers(const std::vector<Member>& members) const;
  std::optional<std::string> finding(const Member& member, const CallEntry& call) const;
  std::string diagnosis(const CallEntry& call) const;

  std::shared_ptr<const CallServices> services_;
  std::string group_text_;
  std::vector<int64_t> ranks_;
  int64_t sequence_ = 0;
};

}  // namespace welkin::parallel
