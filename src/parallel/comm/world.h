// SPDX-License-Identifier: Apache-2.0
// The processes of a run: how they find each other, check that they belong together, and part. What tells the ranks is
// launch/ranks.h; what moves bytes is connection.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/ranks.h"
#include "parallel/comm/connection.h"
#include "parallel/comm/flight_recorder.h"
#include "parallel/comm/group.h"

namespace welkin::parallel {

struct MeetOptions {
  std::chrono::milliseconds patience{600'000};  // of the rendezvous and of every collective
  std::string store = "tcp";                    // "file": launch::RankPlace::store_file, which all ranks share
  std::string interface;                        // of the collectives; empty: the one on which rank 0 is reached
  // What must be equal on all ranks.
  std::string configuration;                             // as text; the first line that differs is named
  std::string program;                                   // hash of the program
  std::function<void(const std::string&)> on_hang = {};  // ConnectOptions::on_hang
  std::shared_ptr<EmulatedLink> link = {};               // ConnectOptions::link
  bool with_gpu = false;                                 // ConnectOptions::with_gpu
};

class World {
 public:
  World() = default;  // of one process: nothing is opened

  // Every rank calls it. Returns when all are there and alike; else every rank throws: CommError naming the ranks that are
  // missing, the port that is taken, the host that is not reached; ConfigError where a rank has another configuration or program.
  static World meet(const launch::RankPlace& place, const MeetOptions& options);

  int64_t rank() const { return place_.rank; }
  int64_t size() const { return place_.world_size; }
  bool leads() const { return place_.rank == 0; }  // this process writes logs, events and checkpoints
  const launch::RankPlace& place() const { return place_; }
  const Group& everyone() const { return everyone_; }

  // The group `members`, of which this rank is one. Members make their groups in the same order.
  Group group(const std::string& name, GroupMembers members) const;

  // What this rank's calls have moved so far, by group and collective; nothing where there is one rank.
  std::vector<CallTotal> traffic() const;
  // The same, a line per group and collective; empty where there is one rank.
  std::string traffic_text() const;

  // From now on the calls of this rank's groups are spans of this tracer, which lives until another is given; null: of none.
  void trace(const observe::Tracer* tracer) const;

  // Before this rank stops because of an error: the others will name it.
  void announce_stop(const std::string& why) const noexcept;
  // The orderly end: waits for all, so that the store outlives everybody's last call.
  void close();

 private:
  launch::RankPlace place_;
  std::shared_ptr<Connection> connection_;
  Group everyone_;
};

}  // namespace welkin::parallel
