// SPDX-License-Identifier: Apache-2.0
// Any layout can load a checkpoint of any other. A checkpoint holds whole tensors, which are put together one at a time for
// a save, or the pieces of all ranks; a rank reads its part of each. Values that go with a parameter
// ("exp_avg.<parameter>") are split as it is: over tp if a plan has split it, and in pieces if data-parallel ranks share
// out the training state.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "parallel/comm/mesh_groups.h"
#include "parallel/shard/param_table.h"
#include "train/checkpoint/checkpoint.h"

namespace welkin::train {

// How the tensors of a run lie on its ranks. The members outlive the objects that are made from it.
struct TensorLayout {
  const parallel::ParamTable& table;
  const parallel::MeshGroups& groups;
  const parallel::Group& shards;  // members have the pieces of one training state
  bool is_copy = false;           // another rank holds the same pieces and parts, and writes them
  // Each member has the parameters of one stage of a pipeline, and the tensors that go with them. The first one writes.
  parallel::Group stages{};
};

// The part of a row's parameter that this rank trains, in the order of memory.
PiecePlace place_of_trained(const parallel::ParamRow& row, const parallel::MeshGroups& groups, const parallel::Group& shards);

// The same group with whole tensors. Every rank (of a pipeline: every rank of a stage) calls it with the same names in the same
// order. The tensors of other stages come last, as uninitialised memory of their shapes.
CheckpointGroup gather_whole(const CheckpointGroup& local, const TensorLayout& layout);

// The same group; each tensor names its place in the whole tensor, so that it can be read from other files. The tensors of
// other stages come last, without memory. Every rank calls it.
CheckpointGroup with_places(const CheckpointGroup& local, const TensorLayout& layout);

// Groups whose split tensors are put together when they are written, in the order in which a file holds them.
class WholeGroups {
 public:
  WholeGroups(std::vector<CheckpointGroup> local, const TensorLayout& layout);
  WholeGroups(const WholeGroups&) = delete;
  WholeGroups& operator=(const WholeGroups&) = delete;

  // For write_checkpoint(), while this object lives.
  const std::vector<CheckpointGroup>& groups() const { return groups_; }

  // Takes part in the tensors that are not put together yet: all on a rank that does not write, the rest on a rank whose write
  // has failed or was not needed.
  void join_others();
  // Takes part in the next one, if the first rank has called for it.
  void join_next() { next(done_); }
  // The first rank calls the others to each tensor by `call`, which runs the exchange that it gets. Empty: they come by
  // themselves.
  using Call = std::function<void(const std::function<void()>& exchange)>;
  void call_others_by(Call call) { call_ = std::move(call); }
  // Prepares another pass over all of them. Every rank calls it.
  void begin_again() { done_ = 0; }
  bool has_parts() const { return !split_.empty(); }  // the same on all ranks

 private:
  void join_parts(const TensorLayout& layout);
  void join_stages(const TensorLayout& layout);
  at::Tensor next(size_t number);

  std::vector<CheckpointGroup> groups_;
  std::vector<std::function<at::Tensor()>> split_;
  Call call_;
  size_t done_ = 0;
};

// The tensors that each rank writes itself if data-parallel ranks share out the training state: its pieces, its part of a
// tensor that is split over tp alone, and in a pipeline the tensors that no earlier stage has.
struct RankTensors {
  std::vector<CheckpointGroup> whole;   // tensors that the first rank writes
  std::vector<CheckpointGroup> pieces;  // of this rank; without tensors where it holds a copy
};
// Every rank calls it.
RankTensors own_tensors(const std::vector<CheckpointGroup>& local, const TensorLayout& layout);

// The tensors of a group that the checkpoint has under the same names, with the same whole shapes and types.
CheckpointGroup fitting_tensors(const Checkpoint& checkpoint, const CheckpointGroup& local, const TensorLayout& layout);

// Reads the tensors of a group, all of which are in the checkpoint.
void read_tensors(const Checkpoint& checkpoint, const CheckpointGroup& local, const TensorLayout& layout);

// Reads a whole group from a checkpoint into the local tensors: of each tensor the part of this rank. No tensor may be missing
// or left over.
void read_parts(const Checkpoint& checkpoint, const CheckpointGroup& local, const TensorLayout& layout);

}  // namespace welkin::train
