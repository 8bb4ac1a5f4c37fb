// SPDX-License-Identifier: Apache-2.0
#include "train/replay/replay_checkpoint.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "parallel/comm/collectives.h"

namespace welkin::train {
namespace {

constexpr const char* kReplayGroup = "replay";

// A tensor of a slot with rows (lanes, ...): this rank's lanes, whole samples.
struct SlotTensor {
  std::string name;
  at::Tensor own;  // as the buffer has it
  bool is_state = false;
};

std::string name_of(int64_t slot, bool is_state) { return cat(is_state ? "state." : "sample.", slot); }

// For a rank that holds states.
std::vector<SlotTensor> tensors_of_slot(const ReplayBuffer& replay, int64_t slot) {
  return {{.name = name_of(slot, false), .own = replay.samples().select(0, slot)},
          {.name = name_of(slot, true), .own = replay.states().select(0, slot), .is_state = true}};
}

// (lanes), or (lanes, C, ...) for a state.
std::vector<int64_t> whole_rows(const ReplayBuffer& replay, bool is_state) {
  std::vector<int64_t> shape{replay.lanes().count};
  if (is_state) shape.insert(shape.end(), replay.whole_shape().begin(), replay.whole_shape().end());
  return shape;
}

// The place of this rank's lanes among the lanes of all ranks.
PiecePlace place_of_lanes(const ReplayBuffer& replay, std::vector<int64_t> rows) {
  PiecePlace place{.whole_shape = std::move(rows), .layout = {}};
  place.begin = replay.lanes().first * (c10::multiply_integers(place.whole_shape) / std::max<int64_t>(1, replay.lanes().count));
  place.whole_shape.front() = replay.plan().batch();
  for (size_t dim = 0; dim < place.whole_shape.size(); ++dim) place.layout.order.push_back(static_cast<int64_t>(dim));
  return place;
}

// Ranks that share samples join the states here, since all of them must call it; else this is the buffer's own memory.
at::Tensor whole_states(const ReplayBuffer& replay, const SlotTensor& tensor) {
  if (!tensor.is_state || replay.shard().is_whole()) return tensor.own;
  return replay.shard().whole_fields(tensor.own.to(replay.device())).cpu();
}

// Goes through the device, since the ranks' groups exchange device memory.
at::Tensor joined_lanes(const ReplayBuffer& replay, const at::Tensor& rows, const parallel::Group& replicas) {
  if (replicas.size() == 1) return rows;
  const parallel::Lengths lengths(static_cast<size_t>(replicas.size()), rows.size(0));  // a batch is split evenly
  return parallel::all_gather(replicas, rows.to(replay.device()), 0, lengths).cpu();
}

bool has_same_size(const Checkpoint& checkpoint, const ReplayBuffer& replay) {
  const auto& stored = checkpoint.index().tensors;
  const int64_t slots = replay.plan().slots();
  if (checkpoint.contains(stored_name(kReplayGroup, name_of(slots, true)))) return false;
  for (int64_t slot = 0; slot < slots; ++slot) {
    for (const bool is_state : {false, true}) {
      const auto record = stored.find(stored_name(kReplayGroup, name_of(slot, is_state)));
      const PiecePlace place = place_of_lanes(replay, whole_rows(replay, is_state));
      if (record == stored.end() || record->second.shape != place.whole_shape) return false;
    }
  }
  return true;
}

// The part of whole states (lanes, C, ...) that this rank reads.
at::Tensor own_part(const ReplayBuffer& replay, at::Tensor states) {
  const auto region = replay.shard().region();
  if (!region) return states;
  for (int64_t dim = 2; dim < states.dim(); ++dim) {
    const auto axis = static_cast<size_t>(dim - 2);
    states = states.narrow(dim, region->begin[axis], region->extent[axis]);
  }
  return states;
}

}  // namespace

CheckpointGroup replay_group(const ReplayBuffer& replay, const parallel::MeshGroups& mesh, const parallel::Group& replicas) {
  const bool is_writer = mesh.along(parallel::Axis::Tp).group_rank() == 0 && mesh.along(parallel::kSampleParts).group_rank() == 0;
  replay.sync();
  CheckpointGroup group{.name = kReplayGroup, .tensors = {}};
  if (!replay.holds_states()) return group;
  for (int64_t slot = 0; slot < replay.plan().slots(); ++slot) {
    for (const SlotTensor& tensor : tensors_of_slot(replay, slot)) {
      const at::Tensor rows = whole_states(replay, tensor);
      const PiecePlace place = place_of_lanes(replay, whole_rows(replay, tensor.is_state));
      CheckpointTensor written{.name = tensor.name, .value = rows};
      written.whole_shape = place.whole_shape;
      if (is_writer) written.piece = place;
      written.join_rows = [&replay, replicas, rows] { return joined_lanes(replay, rows, replicas); };
      group.tensors.push_back(std::move(written));
    }
  }
  return group;
}

std::string load_replay(const Checkpoint& checkpoint, const ReplayBuffer& replay) {
  if (!has_same_size(checkpoint, replay)) return "The checkpoint has no replay buffer of this size: it begins empty";
  const int64_t slots = replay.holds_states() ? replay.plan().slots() : 0;
  for (int64_t slot = 0; slot < slots; ++slot) {
    for (const SlotTensor& tensor : tensors_of_slot(replay, slot)) {
      const std::vector<int64_t> shape = whole_rows(replay, tensor.is_state);
      const at::Tensor rows = checkpoint.read_piece(stored_name(kReplayGroup, tensor.name), place_of_lanes(replay, shape),
                                                    c10::multiply_integers(shape), tensor.own.scalar_type());
      tensor.own.copy_(tensor.is_state ? own_part(replay, rows.view(shape)) : rows.view(shape));
    }
  }
  return "The replay buffer goes on with the states of the checkpoint";
}

}  // namespace welkin::train
