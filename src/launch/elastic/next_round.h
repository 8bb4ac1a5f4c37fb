// SPDX-License-Identifier: Apache-2.0
// The next action of the first node's launcher in an elastic job: a pure function of the known state of its processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/elastic/round.h"

namespace welkin::launch {

// A place for a process on a node.
struct Slot {
  enum class State {
    Running,
    Waiting,  // to be started again
    Done,     // ended with code 0
    Gone,     // it is not started again
  };
  ProcessId id;  // of the process that runs there, or ran last
  State state = State::Running;
  int64_t code = 0;        // of the latest end
  bool is_fatal = false;   // an end that another start would only repeat: a wrong configuration, an interrupt
  std::string words = {};  // how it ended: "rank 1 (process 12 on host) was ended by signal 9 (Killed)"
};
std::string text_of(const Slot& slot);
std::optional<Slot> parse_slot(const std::string& text);

// A slot, and the reports of its process.
struct SlotView {
  Slot slot;
  bool is_ready = false;  // it waits for a round, or is in one
  bool has_left = false;  // the present round
  bool is_seen = false;   // its watch lives, and knows that the present round is over
};

struct JobView {
  ElasticLimits limits;
  std::vector<int64_t> sizes;  // numbers with which the run can go on; empty: no rank has told
  int64_t round = 0;           // 0: none yet
  std::vector<ProcessId> members;
  bool is_closing = false;
  double closing_s = 0;  // since then
  double waiting_s = 0;  // since the beginning, while there is no round
  std::vector<SlotView> slots;
};

// The processes that wait to join, in the order of their slots: the spare ones, where the round has as many as it may.
std::vector<ProcessId> waiting_of(const JobView& job);

struct Patience {
  double silent_s = 5;  // for a process to say that it lives, once its round is closing
  double join_s = 60;   // for all to come to the first round
};

struct Decision {
  enum class Kind { Wait, Start, Close, Request, End };
  Kind kind = Kind::Wait;
  std::vector<ProcessId> members = {};  // Start
  std::vector<ProcessId> kill = {};     // besides: processes that do not answer
  std::string why = {};                 // Start, End
  int64_t code = 0;                     // End
};

// Start: a round of `members` begins. Close: the members must leave the present round. Request: they must leave it between two
// steps, since others wait. End: the run cannot go on, or is over (code 0).
Decision decide(const JobView& job, const Patience& patience);

}  // namespace welkin::launch
