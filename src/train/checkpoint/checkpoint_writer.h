// SPDX-License-Identifier: Apache-2.0
// How a run saves: at once, or beside training. Beside training a step is held for a copy of the state in the host's memory, and
// a thread writes the files. No exchange between ranks runs beside those of a step: all happen while a function of the caller
// runs. Ranks that wait for files wait as slow_writes.h says, for disks have no deadline.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/stopwatch.h"
#include "parallel/comm/group.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/checkpoint/host_copy.h"
#include "train/checkpoint/shared_checkpoint.h"
#include "train/checkpoint/slow_writes.h"
#include "train/checkpoint/whole_tensors.h"

namespace welkin::train {

// Values that every rank holds alike and compares before a checkpoint of them is published.
struct ReplicaVote {
  std::vector<CheckpointTensor> values;  // of this rank; the first rank has them in its group "model", too
  // Every rank calls it with the hash of each value (parallel::hash_of_values). Throws where they differ.
  std::function<void(const std::vector<int64_t>&)> compare;
};

// One checkpoint. Every rank has the same places.
struct SaveTask {
  std::vector<CheckpointGroup> groups;   // what this rank has of the state
  CheckpointIndex index;                 // the index of the first rank is written
  std::vector<CheckpointPlace*> places;  // at least one
  std::optional<BestRecord> best = {};   // the record to be marked in the first place
  std::optional<ReplicaVote> vote = {};  // of save() without pieces; on all ranks or on none
};

struct WriterOptions {
  bool copies = true;       // save() copies the state and writes beside training
  bool skips = false;       // save() leaves a checkpoint out while the one before is being written; else it waits
  bool is_sharded = false;  // every rank has pieces and writes its own files
  c10::Device device = c10::kCPU;
  std::function<void(const std::string&)> report;  // of save(): a checkpoint could not be written
};

class CheckpointWriter {
 public:
  // `world`: all ranks of the run.
  CheckpointWriter(const parallel::Group& world, WriterOptions options);
  // Waits for the thread.
  ~CheckpointWriter() = default;
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Takes the memory for the copy, for a run that will save on the way. Every rank calls it.
  void prepare(std::vector<CheckpointGroup> groups, const TensorLayout& layout);

  // In the middle of a run: errors are reported, there or later, and the run goes on. Every rank calls it. CommError. With a
  // vote copies are hashed beside training. A checkpoint voted down is not written; save(), collect() or finish() throws.
  void save(SaveTask task, const TensorLayout& layout);
  // Writes into the first place that takes it, and returns when the checkpoint is whole. Waits for the one before. Every rank
  // calls it and is told the place; the first rank also gets the errors of earlier places. If no place takes it, all throw
  // CheckpointError, the first rank with the first place's reason.
  struct SavedNow {
    const CheckpointPlace* place = nullptr;
    std::vector<std::string> errors = {};
  };
  SavedNow save_now(SaveTask task, const TensorLayout& layout);

  // True if this rank has done its part of a checkpoint for which all wait: its files are written, or its values hashed.
  bool has_written() const;
  // Between steps. `all_have_written`: of every rank, and every rank calls it then. Votes or publishes, and reports.
  void collect(bool all_have_written);
  // Waits until nothing is being written, and reports. Every rank calls it.
  void finish();
  // Waits for all work that needs no other rank. Nothing is reported.
  void wait_for_own() const;

  // Folders that save() has published since the last call; for each the first place that took it. On the first rank.
  std::vector<std::filesystem::path> take_saved() { return std::exchange(saved_, {}); }
  // Step of the latest checkpoint that was saved and marked as the best. On the first rank, once it is finished.
  std::optional<int64_t> marked_best() const { return marked_; }
  // Seconds from the beginning of the latest save to its publication, on the first rank; 0 before the first.
  double save_seconds() const { return save_s_; }
  // Seconds for which the latest save() that was not left out has held this rank.
  double held_seconds() const { return last_held_s_; }
  // How often save() wrote beside training, and for how long steps were held. Empty if nothing was written beside training.
  std::string summary() const;

 private:
  struct Written {
    std::vector<std::string> errors;
    std::filesystem::path folder = {};                 // empty: no place took it
    std::vector<const CheckpointPlace*> places = {};   // places that took it, of those that another node copies
    std::vector<std::vector<std::string>> files = {};  // for each of them the files to copy; empty: all
    std::optional<int64_t> marked = {};                // step of the best one, where best.json names it
    double seconds = 0;
    std::vector<int64_t> hashes = {};  // of the values that are voted on
  };
  // A checkpoint that is written if the vote is for it.
  struct Pending {
    SaveTask task;
    RankTensors copies;
  };

  bool is_first() const { return world_.group_rank() == 0; }
  bool is_writing() const;
  void await_jobs() const;
  bool skips_this();
  bool takes_copy(const RankTensors& own);
  void save_whole(SaveTask task, const TensorLayout& layout);
  bool votes_beside(SaveTask& task, const WholeGroups& whole);
  void begin_vote(SaveTask task, const WholeGroups& whole);
  void end_vote();
  void write_beside(SaveTask task, RankTensors copies);
  void save_pieces(SaveTask task, const TensorLayout& layout);
  void begin_pieces(RankTensors own);
  void begin_shared(const SaveTask& task);
  void exchange_and_publish();
  void take_result();
  // Called before the groups' parts are put together once more.
  using Again = std::function<void()>;
  static Written write_to_places(const SaveTask& task, const std::vector<CheckpointGroup>& groups, const Again& again);
  static Again begin_writing(FirstWrites& writes, WholeGroups& whole);
  static RankTensors copied(FirstWrites& writes, WholeGroups& whole, HostCopy& copy);
  void follow_first(WholeGroups& whole) const;
  void write_whole(const SaveTask& task, FirstWrites& writes, WholeGroups& whole);
  SavedNow save_whole_now(SaveTask task, const TensorLayout& layout);
  SavedNow save_pieces_now(const SaveTask& task, const TensorLayout& layout);
  std::unique_ptr<SignThread> patience_of_receivers(const SaveTask& task) const;
  static void send_copies(const SaveTask& task, Written& written);
  void exchange_copies(Written& written) const;
  void receive_copies(const SaveTask& task);
  void note(const Written& written);
  Written published() const;

  parallel::Group world_;
  WriterOptions options_;
  bool waits_;  // on every rank: save() publishes before it returns
  HostCopy copy_;
  std::vector<std::unique_ptr<SharedCheckpoint>> shared_;  // begun and not published
  std::vector<CheckpointPlace*> shared_places_;            // their places, in their order
  std::optional<BestRecord> shared_best_;
  std::optional<Pending> pending_;               // its values are being hashed
  const CheckpointPlace* best_place_ = nullptr;  // the place where that one is marked
  std::optional<int64_t> marked_;
  bool is_exchanged_ = false;  // the first rank publishes `shared_`
  bool is_beside_ = false;     // the latest save() has taken a copy
  Stopwatch since_begin_;
  double save_s_ = 0, last_held_s_ = 0, held_s_ = 0, most_held_s_ = 0;
  int64_t num_beside_ = 0, num_skipped_ = 0;
  std::vector<std::filesystem::path> saved_;
  std::future<Written> job_;  // destroyed first: its destructor waits
};

}  // namespace welkin::train
