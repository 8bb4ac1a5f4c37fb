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

// Of what all ranks have of a slot: `rows` (lanes, ...).
PiecePlace place_of_lanes(const ReplayBuffer& replay, const at::Tensor& rows) {
  PiecePlace place{.whole_shape = rows.sizes().vec(), .layout = {}};
  place.begin = replay.lanes().first * (rows.numel() / std::max<int64_t>(1, rows.size(0)));
  place.whole_shape.front() = replay.plan().batch();
  for (int64_t dim = 0; dim < rows.dim(); ++dim) place.layout.order.push_back(dim);
  return place;
}

// Through the device, between whose memory the ranks' groups exchange.
at::Tensor joined_lanes(const ReplayBuffer& replay, const at::Tensor& rows, const parallel::Group& replicas) {
  if (replicas.size() == 1) return rows;
  const parallel::Lengths lengths(static_cast<size_t>(replicas.size()), rows.size(0));  // a batch is split evenly
  return parallel::all_gather(replicas, rows.to(replay.device()), 0, lengths).cpu();
}

std::vector<CheckpointTensor> tensors_of_slot(const ReplayBuffer& replay, int64_t slot) {
  return {{.name = cat("sample.", slot), .value = replay.samples().select(0, slot)},
          {.name = cat("state.", slot), .value = replay.states().select(0, slot)}};
}

bool has_same_size(const Checkpoint& checkpoint, const ReplayBuffer& replay) {
  const auto& stored = checkpoint.index().tensors;
  const int64_t slots = replay.plan().slots();
  if (checkpoint.contains(stored_name(kReplayGroup, cat("state.", slots)))) return false;
  for (int64_t slot = 0; slot < slots; ++slot) {
    for (const CheckpointTensor& tensor : tensors_of_slot(replay, slot)) {
      const auto record = stored.find(stored_name(kReplayGroup, tensor.name));
      if (record == stored.end() || record->second.shape != place_of_lanes(replay, tensor.value).whole_shape) return false;
    }
  }
  return true;
}

}  // namespace

CheckpointGroup replay_group(const ReplayBuffer& replay, const parallel::MeshGroups& mesh, const parallel::Group& replicas) {
  const bool is_writer = mesh.along(parallel::Axis::Tp).group_rank() == 0 && mesh.along(parallel::kSampleParts).group_rank() == 0;
  replay.sync();
  CheckpointGroup group{.name = kReplayGroup, .tensors = {}};
  for (int64_t slot = 0; slot < replay.plan().slots(); ++slot) {
    for (CheckpointTensor& tensor : tensors_of_slot(replay, slot)) {
      const PiecePlace place = place_of_lanes(replay, tensor.value);
      tensor.whole_shape = place.whole_shape;
      if (is_writer) tensor.piece = place;
      tensor.join_rows = [&replay, replicas, rows = tensor.value] { return joined_lanes(replay, rows, replicas); };
      group.tensors.push_back(std::move(tensor));
    }
  }
  return group;
}

std::string load_replay(const Checkpoint& checkpoint, const ReplayBuffer& replay) {
  if (!has_same_size(checkpoint, replay)) return "The checkpoint has no replay buffer of this size: it begins empty";
  for (int64_t slot = 0; slot < replay.plan().slots(); ++slot) {
    for (const CheckpointTensor& tensor : tensors_of_slot(replay, slot)) {
      const at::Tensor rows = checkpoint.read_piece(stored_name(kReplayGroup, tensor.name), place_of_lanes(replay, tensor.value),
                                                    tensor.value.numel(), tensor.value.scalar_type());
      tensor.value.copy_(rows.view(tensor.value.sizes()));
    }
  }
  return "The replay buffer goes on with the states of the checkpoint";
}

}  // namespace welkin::train
