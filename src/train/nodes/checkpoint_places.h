// SPDX-License-Identifier: Apache-2.0
// The places of a run's checkpoints, some of which lie on each node's own disk: finds the newest whole checkpoint of all
// places, and keeps each place tidy on the rank that is responsible for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "parallel/comm/world.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/nodes/neighbour_copies.h"
#include "train/nodes/node_map.h"
#include "train/nodes/place_owner.h"
#include "train/nodes/run_lock.h"

namespace welkin::train {

class CheckpointPlaces {
 public:
  using Say = std::function<void(const std::string&)>;

  // `folder` holds the run's own checkpoints.
  CheckpointPlaces(const parallel::World& world, const config::LoopConfig& config, const std::filesystem::path& folder);

  std::vector<CheckpointPlace>& all() { return all_; }  // the run's folder first
  const std::vector<CheckpointPlace>& all() const { return all_; }
  const CheckpointPlace& own() const { return all_.front(); }

  // The nodes learn of each other, and places with copies get their functions. `is_sharded`: every rank has a part of a
  // checkpoint. Every rank calls it, once, before the functions below.
  void connect(bool is_sharded);
  // Locks the places outside of the run's folder, for a run that resumes or begins: no other run writes there until this object
  // is gone. ConfigError on all ranks if another run works in one, or its checkpoints are there. Every rank calls it, after
  // connect().
  void take(bool resumes);
  // The newest whole checkpoint of all places, on every rank; nothing if there is none. Every rank calls it. On the first rank
  // `warn` gets a line for each damaged one; `num_found` is the number of all.
  std::optional<Checkpoint> newest_good(const Say& warn, const Say& say, size_t& num_found);
  // Moves the checkpoints of an earlier run to a folder beside it. Every rank calls it.
  void put_aside(const Say& say);
  // For a run that goes on from `step`: the places belong to it from then on. Every rank calls it.
  void continue_from(int64_t step);
  // Acts on the first rank only.
  void prune();
  std::string newest() const;  // the folder; empty if there is none

 private:
  bool looks_after(const CheckpointPlace& place) const;
  std::string hold(const CheckpointPlace& place, const RunName& own);
  void sign() const;
  std::vector<std::string> told(const std::string& text) const;
  std::string id_of_run(bool resumes, const RunName& own) const;
  std::vector<std::filesystem::path> folders_found();
  Checkpoint open(const std::filesystem::path& folder, const Say& say);

  const parallel::World& world_;
  std::vector<CheckpointPlace> all_;
  NodeMap map_;
  std::optional<NeighbourCopies> copies_;
  std::vector<RunLock> locks_;
  RunName name_;                                // the run, if it has other places than its folder
  std::vector<std::filesystem::path> brought_;  // checkpoints that other nodes sent to this rank's node
};

}  // namespace welkin::train
