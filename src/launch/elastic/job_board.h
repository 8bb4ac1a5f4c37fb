// SPDX-License-Identifier: Apache-2.0
// Messages between the launchers and the ranks of an elastic job: short texts under keys, which outlive every rank. A restarted
// process has another name, and each round another number, so no text is taken for an earlier one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/text.h"

namespace welkin::launch {

class JobBoard {
 public:
  virtual ~JobBoard() = default;
  // Throws CommError when the first node's launcher is gone.
  virtual void set(const std::string& key, const std::string& text) = 0;
  virtual std::optional<std::string> read(const std::string& key) = 0;
  // Connections that were closed, since they did not have the job's secret; counted where the board is served.
  virtual int64_t strangers() const { return 0; }
};

// The address of a job's board. The first node's launcher serves it at its socket.
struct BoardPlace {
  std::string host;
  int64_t port = 0;
  int listener = -1;  // -1: another node serves it
  std::string secret;
  int64_t num_ranks = 1;
};
using MakeBoard = std::function<std::unique_ptr<JobBoard>(const BoardPlace&)>;

// "3 open": the latest round and its state. Written by the first node's launcher.
inline constexpr const char* kNowKey = "elastic/now";
inline std::string round_key(int64_t number) { return cat("elastic/round/", number); }
// The job is over: an exit code and a sentence. Written by the first node's launcher.
inline constexpr const char* kEndKey = "elastic/end";
// A node's launcher has read that, or leaves: the board need not stay for it. Written by that launcher.
inline std::string bye_key(int64_t node) { return cat("elastic/bye/", node); }
// Numbers of ranks with which the run can go on, "4 2 1". Written by every rank, the same text.
inline constexpr const char* kSizesKey = "elastic/sizes";
// The run has its own folder, whose checkpoints may be continued. Written by the first rank.
inline constexpr const char* kBegunKey = "elastic/begun";
// A place for a process: the text of a Slot. Written by its node's launcher.
inline std::string slot_key(int64_t node, int64_t local) { return cat("elastic/slot/", node, ".", local); }
// With which numbers a node's launcher was started (job_size.h). Written by that launcher.
inline std::string size_key(int64_t node) { return cat("elastic/size/", node); }
inline std::string beat_key(int64_t node) { return cat("elastic/beat/", node); }
// The first node's launcher wants this process ended, and writes it.
inline std::string order_key(const std::string& id) { return cat("elastic/order/", id); }
// A process waits for a round. Written by the process.
inline std::string hello_key(const std::string& id) { return cat("elastic/hello/", id); }
// A process has left a round, and why; its watch has seen that the round is over. Written by the process.
inline std::string left_key(int64_t round, const std::string& id) { return cat("elastic/left/", round, "/", id); }
inline std::string seen_key(int64_t round, const std::string& id) { return cat("elastic/seen/", round, "/", id); }

}  // namespace welkin::launch
