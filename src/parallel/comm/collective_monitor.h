// SPDX-License-Identifier: Apache-2.0
// The bookkeeping around every collective of a group: sequence number, flight-recorder entry and span. When a call fails, it
// reports what each other rank does: another call, stopped with an error, waiting, computing, or silent (ended or suspended).
// Ranks exchange this over the key-value store (the rendezvous store), which needs no collective. The watchdog thread of a rank
// answers while the rank itself waits or computes (watchdog.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observe/timeline/span.h"
#include "parallel/comm/flight_recorder.h"

namespace welkin::parallel {

// Short texts that all ranks can read. No call waits for another rank.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual void set(const std::string& key, const std::string& text) = 0;
  virtual void set_if_absent(const std::string& key, const std::string& text) = 0;  // unless somebody has
  virtual std::optional<std::string> read(const std::string& key) = 0;
};

// The services of a process, shared by the monitors of its groups.
struct CallServices {
  int64_t rank = 0;
  std::chrono::milliseconds deadline{0};  // of one collective
  std::chrono::milliseconds grace{3000};  // for the others' notices after a failure
  std::shared_ptr<KeyValueStore> kv_store;
  std::shared_ptr<FlightRecorder> recorder;
  const observe::Tracer* tracer = nullptr;
  std::function<bool()> is_over = {};  // ConnectOptions::is_over

  bool have_parted() const { return is_over && is_over(); }
};

// The first line of a back end's error message, without source location and stack trace.
std::string reason_of(const std::string& said);

// Keys under which a rank that stops because of its own error posts the reason: one for the first such rank, one per rank.
inline constexpr const char* kStoppedKey = "stopped";
std::string stopped_key(int64_t rank);
// Posted by the first rank whose call fails. From then on the watchdog of every rank posts what its rank does.
inline constexpr const char* kAlarmKey = "alarm";
std::string status_key(int64_t rank);
// The posted status: "in " and the oldest call in progress, or "out " and a sentence. A second line holds the seconds.
std::string status_text(const FlightRecorder& recorder);

class CollectiveMonitor {
 public:
  CollectiveMonitor(std::shared_ptr<const CallServices> services, std::string group_text, std::vector<int64_t> ranks);

  const CallServices& services() const { return *services_; }
  int64_t next_sequence() const { return sequence_ + 1; }
  // A new call: its ticket in the recorder.
  int64_t begin(const char* name, std::string shape, int64_t bytes = 0, bool is_on_gpu = false);
  void end(int64_t ticket) { services_->recorder->finish(ticket, CallState::Done); }
  // Throws CommError about the call of this ticket.
  [[noreturn]] void fail(int64_t ticket, const std::string& reason);

 private:
  // What the store has about a member.
  struct Member {
    int64_t rank = 0;
    std::optional<std::string> failed;  // the call in which it failed, of this group
    std::optional<std::string> left;    // it stopped, and why
    std::optional<std::string> doing;   // its watch's answer
    bool is_known() const { return failed || left || doing; }
  };
  std::string member_key(const char* key, int64_t rank) const;
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
