// SPDX-License-Identifier: Apache-2.0
// The processes of a run. They connect, check that they run the same program and configuration, and disconnect. launch/ranks.h
// finds rank and world size. connection.h moves the bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/schema/choices.h"
#include "launch/ranks.h"
#include "parallel/comm/connection.h"
#include "parallel/comm/flight_recorder.h"
#include "parallel/comm/group.h"

namespace welkin::parallel {

struct WorldOptions {
  std::chrono::milliseconds timeout{600'000};            // of the rendezvous and of every collective
  config::WireupStore store = config::WireupStore::Tcp;  // File: launch::RankInfo::store_file, which all ranks share
  std::string interface;                                 // of the collectives; empty: the one on which rank 0 is reached
  // What must be equal on all ranks.
  std::string secret;                                    // ConnectOptions::secret
  std::string configuration;                             // as text; the first line that differs is named
  std::string program;                                   // hash of the program
  std::function<void(const std::string&)> on_hang = {};  // ConnectOptions::on_hang
  std::shared_ptr<EmulatedLink> link = {};               // ConnectOptions::link
  std::function<bool()> is_over = {};                    // ConnectOptions::is_over
  bool with_gpu = false;                                 // ConnectOptions::with_gpu
  SharedMemory shared_memory = SharedMemory::Auto;       // ConnectOptions::shared_memory
};

class World {
 public:
  World() = default;  // of one process: nothing is opened

  // Every rank calls it. Returns when all are there and alike; else every rank throws: CommError naming the ranks that are
  // missing, the port that is taken, the host that is not reached; ConfigError where a rank has another configuration or program.
  static World connect(const launch::RankInfo& place, const WorldOptions& options);

  int64_t rank() const { return place_.rank; }
  int64_t size() const { return place_.world_size; }
  bool is_main() const { return place_.rank == 0; }  // this process writes logs, events and checkpoints
  const launch::RankInfo& rank_info() const { return place_; }
  const Group& world_group() const { return world_group_; }

  // The group `members`, of which this rank is one. Members make their groups in the same order.
  Group group(const std::string& name, GroupMembers members) const;

  // What this rank's calls have moved so far, by group and collective; nothing where there is one rank.
  std::vector<CallTotal> traffic() const;
  // The same, a line per group and collective; empty where there is one rank.
  std::string traffic_text() const;

  // For the log of rank 0. At the start: that the ranks meet without a secret where other machines can reach them. At the end:
  // how many strangers' connections were closed. Empty: nothing of the kind.
  std::string open_to_strangers_text() const;
  std::string strangers_text() const;
  // What carries the collectives of all ranks' host tensors; empty where there is one rank.
  std::string carrier() const;

  // From now on this tracer records the calls of this rank's groups. It must live until another is set. Null: no spans.
  void trace(const observe::Tracer* tracer) const;

  // Before this rank stops because of an error: the others will name it.
  void announce_stop(const std::string& why) const noexcept;
  // Normal shutdown. Waits for all ranks, so that the store outlives the last call of each.
  void close();

 private:
  launch::RankInfo place_;
  bool has_secret_ = false;
  std::shared_ptr<Connection> connection_;
  Group world_group_;
};

}  // namespace welkin::parallel
