// SPDX-License-Identifier: Apache-2.0
// A checkpoint that many ranks write at once, each its own files, and one publishes: by one rename, when all have written. And
// one that many ranks open.
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

// A checkpoint that is being written. Its steps, in this order: begin() and exchange() on every rank of `world`, write() on each
// in between on any thread, publish() where publishes() says so, on any thread. Where a rank fails, the folder that grows is
// removed with the object that would publish it.
class SharedCheckpoint {
 public:
  // Every rank calls it with the same `folder`, which lies on a file system that all see. The first one asks
  // `make_index`, which gives nothing where there is nothing to write: then all get nothing. It throws what `make_index` throws,
  // and CheckpointError where the folder cannot be made; the others get nothing then.
  static std::unique_ptr<SharedCheckpoint> begin(const parallel::Group& world, const std::filesystem::path& folder,
                                                 const std::function<std::optional<CheckpointIndex>()>& make_index);
  // The same with a folder of each node, on its own disk: of its ranks' files, and of the index of all. `leader`: the first rank
  // of this rank's node, which publishes there; a node that cannot make its folder fails the checkpoint.
  static std::unique_ptr<SharedCheckpoint> begin_on_nodes(const parallel::Group& world, const std::filesystem::path& folder,
                                                          const std::function<std::optional<CheckpointIndex>()>& make_index,
                                                          int64_t leader);
  SharedCheckpoint(std::filesystem::path folder, std::optional<CheckpointIndex> index, std::unique_ptr<AsideFolder> own_aside,
                   int64_t writer, int64_t rank);

  // This rank's files: its pieces, and the first rank's whole tensors besides. What goes wrong is kept for publish().
  void write(const RankTensors& own);
  // In the place of write(), where this rank cannot: why.
  void fail(const std::string& reason);
  // What each rank has written, to the first one. CommError on all when a rank does not take part.
  void exchange(const parallel::Group& world);
  // CheckpointError with the reason and the rank where a file could not be written.
  void publish();

  bool publishes() const { return own_aside_ != nullptr; }
  // Of a node's folder, once it is published: its ranks' files and the index. Else none: all that are there.
  const std::vector<std::string>& node_files() const { return node_files_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_, aside_;
  std::optional<CheckpointIndex> index_;    // of the first rank
  std::unique_ptr<AsideFolder> own_aside_;  // of who publishes
  int64_t rank_;
  std::vector<int64_t> leaders_;    // of each rank its node's first one; empty: all see one folder
  std::string written_;             // the index of this rank's files, or what went wrong
  std::vector<std::string> texts_;  // of all ranks
  std::vector<std::string> node_files_;
};

// All steps at once. The first rank throws what they throw; the others return.
void write_shared_checkpoint(const parallel::Group& world, const std::filesystem::path& folder, const RankTensors& own,
                             const std::function<std::optional<CheckpointIndex>()>& make_index);

// The checkpoint on every rank of `world`, each of which has verified its share of the files: all bytes are looked at once.
// CheckpointError on all where a rank finds a file missing or damaged.
Checkpoint open_shared_checkpoint(const parallel::Group& world, const std::filesystem::path& folder);

// The first rank's number, on all.
int64_t told_by_first(const parallel::Group& world, int64_t number);

// The first rank's list on all: a folder may change while others look.
std::vector<int64_t> steps_of_first(const parallel::Group& world, const std::vector<int64_t>& steps);

}  // namespace welkin::train
