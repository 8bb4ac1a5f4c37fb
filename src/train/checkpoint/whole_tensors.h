// SPDX-License-Identifier: Apache-2.0
// Any layout loads what any other has saved: a checkpoint holds whole tensors, which are put together for a save one at a time,
// or the pieces of all ranks; a rank reads what it has of each. Values that go with a parameter
// ("exp_avg.<parameter>") are split as it is: over tp where a plan has split it, and in pieces where data-parallel ranks share
// out the training state.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "parallel/comm/mesh_groups.h"
#include "parallel/shard/param_table.h"
#include "train/checkpoint/checkpoint.h"

namespace welkin::train {

// How the tensors of a run lie on its ranks. All of it outlives what is made from it.
struct TensorLayout {
  const parallel::ParamTable& table;
  const parallel::MeshGroups& groups;
  const parallel::Group& shards;  // members have the pieces of one training state
  bool is_copy = false;           // another rank holds the same pieces and parts, and writes them
  // Members have the parameters of one stage of a pipeline each, and what goes with them. The first one writes.
  parallel::Group stages{};
};

// What of a row's parameter this rank trains, in the order of memory.
PiecePlace place_of_trained(const parallel::ParamRow& row, const parallel::MeshGroups& groups, const parallel::Group& shards);

// The same group with whole tensors. Every rank calls it with the same names in the same order, of a pipeline every rank of a
// stage. Behind them come the tensors of other stages, as memory of their shapes that nobody looks at.
CheckpointGroup gather_whole(const CheckpointGroup& local, const TensorLayout& layout);

// The same group, where each tensor says of which whole it is what: for who reads it from elsewhere. Behind them come the tensors
// of other stages, without memory. Every rank calls it.
CheckpointGroup with_places(const CheckpointGroup& local, const TensorLayout& layout);

// Groups whose split tensors are put together when they are written, in the order in which a file holds them.
class WholeGroups {
 public:
  WholeGroups(std::vector<CheckpointGroup> local, const TensorLayout& layout);
  WholeGroups(const WholeGroups&) = delete;
  WholeGroups& operator=(const WholeGroups&) = delete;

  // For write_checkpoint(), while this object lives.
  const std::vector<CheckpointGroup>& groups() const { return groups_; }

  // Takes part in what has not been put together yet: of a rank that does not write, all; of one whose write has failed or was
  // not needed, the rest.
  void join_others();
  // For another pass over all of them. Every rank calls it.
  void begin_again() { done_ = 0; }
  bool has_parts() const { return !split_.empty(); }  // the same on all ranks

 private:
  void join_parts(const TensorLayout& layout);
  void join_stages(const TensorLayout& layout);
  at::Tensor next(size_t number);

  std::vector<CheckpointGroup> groups_;
  std::vector<std::function<at::Tensor()>> split_;
  size_t done_ = 0;
};

// What each rank writes itself where data-parallel ranks share out the training state: its pieces, of a tensor that is split over
// tp alone its part, and of a pipeline what no earlier stage has.
struct RankTensors {
  std::vector<CheckpointGroup> whole;   // tensors that the first rank writes
  std::vector<CheckpointGroup> pieces;  // of this rank; without tensors where it holds a copy
};
// Every rank calls it.
RankTensors own_tensors(const std::vector<CheckpointGroup>& local, const TensorLayout& layout);

// Of a group those that the checkpoint has under the same names, of the same whole shapes and types.
CheckpointGroup fitting_tensors(const Checkpoint& checkpoint, const CheckpointGroup& local, const TensorLayout& layout);

// Reads tensors of a group that are known to be there.
void read_tensors(const Checkpoint& checkpoint, const CheckpointGroup& local, const TensorLayout& layout);

// The same for a whole group, of which nothing may be missing or left over: reads a group from a checkpoint into the local
// tensors: of each what this rank has of it.
void read_parts(const Checkpoint& checkpoint, const CheckpointGroup& local, const TensorLayout& layout);

}  // namespace welkin::train
