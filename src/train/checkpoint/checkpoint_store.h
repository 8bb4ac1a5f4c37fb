// SPDX-License-Identifier: Apache-2.0
// The checkpoints of one run: <run folder>/checkpoints/step_N, and best.json, which names the checkpoint with the smallest
// validation loss, or the smallest value of another metric.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "train/checkpoint/checkpoint.h"

namespace welkin::train {

struct BestRecord {
  int64_t step = 0;
  double validation_loss = 0;
  std::string metric = {};  // the metric by which it is the best; empty: the validation loss
  double value = 0;         // of that metric
  bool operator==(const BestRecord&) const = default;
};

class CheckpointStore {
 public:
  // Nothing is made before the first save.
  explicit CheckpointStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path path_of(int64_t step) const;
  std::vector<int64_t> steps() const;  // newest first; only names, nothing is verified

  // Restores the name of a checkpoint whose writer was ended while it replaced it. For a run that will look for one.
  void put_back() const;

  // True if step_<iteration> is still to be written: it is not there whole with equal position. Makes the store's folder.
  bool wants(const CheckpointIndex& index) const;
  // Writes step_<iteration>, unless it exists with equal position: then there is nothing to do. A damaged or different
  // checkpoint of this name stays until the new one is whole.
  void save(const CheckpointIndex& index, const std::vector<CheckpointGroup>& groups);

  // The same, with the files of a whole checkpoint copied from another folder.
  void copy_from(const std::filesystem::path& checkpoint, const CheckpointIndex& index);

  void mark_best(const BestRecord& record);
  std::optional<BestRecord> best() const;  // nothing when there is no readable record
  // The best of the present checkpoints by `metric` (empty: the validation loss), none later than `step`. The checkpoints' own
  // records count: a killed writer may leave one that best.json does not name. best.json names the result from then on. If the
  // checkpoint `believed` is there, the others are not read.
  std::optional<BestRecord> repair_best(const std::string& metric, std::optional<int64_t> believed, int64_t step);

  // Removes all but the `keep` newest ones, the best one, and those of steps that are multiples of `keep_every` (0: none).
  void prune(int64_t keep, int64_t keep_every = 0);

  // For a run that goes on from `step` (0: begins). Renames later checkpoints, which first_good() has refused, to
  // step_N.damaged: they would be counted as the newest ones. Removes half-written folders of a killed writer.
  void continue_from(int64_t step);

  // Moves what an earlier run of this folder left to <folder>.old-<n>; returns that path, nothing when there was nothing.
  std::optional<std::filesystem::path> move_aside();

 private:
  std::filesystem::path folder_;
};

// A folder of checkpoints, and which of them stay.
struct CheckpointPlace {
  std::string name;  // empty: the run's folder
  CheckpointStore store;
  int64_t interval = 0;    // steps between checkpoints; 0: none on the way, unless the run chooses
  int64_t keep = 1;        // newest that stay
  int64_t keep_every = 0;  // checkpoints at multiples of so many steps stay besides; 0: none
  bool is_auto = false;    // the run chooses the interval
  int64_t last_step = 0;   // step of the latest checkpoint that the run knows
  bool on_nodes = false;   // each node has a disk of its own under this path
  int64_t leader = 0;      // if on_nodes: the first rank of this rank's node
  // Called beside training, if another node keeps copies. copy_out(), on the rank that writes, gets the written checkpoint
  // (nothing: it failed) and the names of the files to send (empty: all). copy_in() is called on the rank that keeps the copy.
  std::function<void(const std::optional<std::filesystem::path>&, const std::vector<std::string>&)> copy_out = {};
  std::function<void()> copy_in = {};
  // Tells the receiver to wait on: before copy_out(), while the checkpoint is being written.
  std::function<void()> ask_patience = {};
};

// The run's own folder first, then one named like it in each of checkpoint_dirs. `node` is the number of this rank's node.
std::vector<CheckpointPlace> checkpoint_places(const config::LoopConfig& config, const std::filesystem::path& folder,
                                               int64_t node);

// The first of `folders` that `open` opens. `report` is told about each damaged one before it (the text of its error).
using OpenCheckpoint = std::function<Checkpoint(const std::filesystem::path&)>;
std::optional<Checkpoint> first_good(const std::vector<std::filesystem::path>& folders, const OpenCheckpoint& open,
                                     const std::function<void(const std::string&)>& report);

// The folder step_N that the choice means. "best" without a record means the newest. CheckpointError when there is none; it
// names the checkpoints that there are.
std::filesystem::path find_checkpoint(const std::filesystem::path& run_folder, const std::string& choice);

}  // namespace welkin::train
