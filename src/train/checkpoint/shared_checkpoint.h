// SPDX-License-Identifier: Apache-2.0
// A checkpoint that many ranks write at once, each its own files. One rank publishes it by one rename, when all have written.
// And a checkpoint that many ranks open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/comm/group.h"
#include "train/checkpoint/aside_folder.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/whole_tensors.h"

namespace welkin::train {

// A checkpoint that is being written. Its steps, in this order: begin() and exchange() on every rank of `world`, write() on
// each in between on any thread, publish() on any thread of a rank where publishes() is true. If a rank fails, the unfinished
// folder is removed with the object that would publish it.
class SharedCheckpoint {
 public:
  // Every rank calls it with the same `folder`, which lies on a file system that all see. The first rank calls `make_index`,
  // which returns nothing if there is nothing to write: then all get null. Throws on the first rank what `make_index` throws,
  // and CheckpointError if the folder cannot be made; the others get null then.
  static std::unique_ptr<SharedCheckpoint> begin(const parallel::Group& world, const std::filesystem::path& folder,
                                                 const std::function<std::optional<CheckpointIndex>()>& make_index);
  // The same with a folder per node, on its own disk, for the files of its ranks and the index of all. `leader` is the first
  // rank of this rank's node, which publishes there. A node that cannot make its folder fails the checkpoint.
  static std::unique_ptr<SharedCheckpoint> begin_on_nodes(const parallel::Group& world, const std::filesystem::path& folder,
                                                          const std::function<std::optional<CheckpointIndex>()>& make_index,
                                                          int64_t leader);
  SharedCheckpoint(std::filesystem::path folder, std::optional<CheckpointIndex> index, std::unique_ptr<AsideFolder> own_aside,
                   int64_t writer, int64_t rank);

  // Writes this rank's files: its pieces, and on the first rank the whole tensors besides. An error is kept for publish().
  void write(const RankTensors& own);
  // Called instead of write() if this rank cannot write, with the reason.
  void fail(const std::string& reason);
  // Sends the index of each rank's files to the first rank. CommError on all when a rank does not take part.
  void exchange(const parallel::Group& world);
  // Throws CheckpointError with the reason and the rank if a file could not be written.
  void publish();

  bool publishes() const { return own_aside_ != nullptr; }
  // Files of a node's folder, once it is published: those of its ranks, and the index. Empty for a folder that all ranks share.
  const std::vector<std::string>& node_files() const { return node_files_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_, aside_;
  std::optional<CheckpointIndex> index_;    // of the first rank
  std::unique_ptr<AsideFolder> own_aside_;  // of a rank that publishes
  int64_t rank_;
  std::vector<int64_t> leaders_;    // for each rank the first one of its node; empty: all see one folder
  std::string written_;             // the index of this rank's files, or the error
  std::vector<std::string> texts_;  // of all ranks
  std::vector<std::string> node_files_;
};

// All steps at once. The first rank throws their errors; the others return.
void write_shared_checkpoint(const parallel::Group& world, const std::filesystem::path& folder, const RankTensors& own,
                             const std::function<std::optional<CheckpointIndex>()>& make_index);

// Opens the checkpoint on every rank of `world`. Each rank verifies its share of the files, so that all bytes are checked once.
// CheckpointError on all ranks if one finds a file missing or damaged.
Checkpoint open_shared_checkpoint(const parallel::Group& world, const std::filesystem::path& folder);

// Returns the first rank's number on all ranks.
int64_t told_by_first(const parallel::Group& world, int64_t number);

// Returns the first rank's list on all ranks: a folder may change while others look.
std::vector<int64_t> steps_of_first(const parallel::Group& world, const std::vector<int64_t>& steps);

}  // namespace welkin::train
