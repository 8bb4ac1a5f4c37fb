// SPDX-License-Identifier: Apache-2.0
// What surrounds every collective of a group: its number, its entry in the flight recorder, its span, and, when it fails, one
// sentence about which ranks are silent: ended, busy elsewhere, or waiting in the ring for one that is. Ranks tell each other
// through a notice board (the rendezvous store), which works without any collective.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observe/span.h"
#include "parallel/flight_recorder.h"

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

// What a rank that stops for a reason of its own posts, so that the others' failures can name it.
inline constexpr const char* kStoppedNotice = "stopped";

class CallDesk {
 public:
  CallDesk(std::shared_ptr<const CallServices> services, std::string group_text, std::vector<int64_t> ranks);

  const CallServices& services() const { return *services_; }
  int64_t next_sequence() const { return sequence_ + 1; }
  // A new call: its ticket in the recorder.
  int64_t begin(const char* name, std::string shape);
  void end(int64_t ticket) { services_->recorder->finish(ticket, CallState::Done); }
  // Throws CommError about the call of this ticket.
  [[noreturn]] void fail(int64_t ticket, const std::string& reason);

 private:
  using Notices = std::vector<std::optional<std::string>>;
  std::string notice_key(const char* key, int64_t rank) const;
  std::string diagnosis(const CallEntry& call) const;
  Notices gather_notices(const char* key, const std::vector<int64_t>& ranks) const;

  std::shared_ptr<const CallServices> services_;
  std::string group_text_;
  std::vector<int64_t> ranks_;
  int64_t sequence_ = 0;
};

}  // namespace welkin::parallel
