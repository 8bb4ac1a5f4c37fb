// SPDX-License-Identifier: Apache-2.0
// Compares replicas before a checkpoint of them is written. A step is held for the copy alone. A thread hashes the copy, and
// the ranks compare their hashes between two later steps.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "parallel/shard/model_parallel_gradients.h"
#include "train/checkpoint/checkpoint_writer.h"

namespace welkin::train {
namespace {

std::vector<int64_t> hashes_of(const std::vector<CheckpointTensor>& values) {
  std::vector<int64_t> hashes;
  for (const CheckpointTensor& tensor : values) hashes.push_back(parallel::hash_of_values(tensor.value));
  return hashes;
}

// The copies of the values, in their order.
std::vector<CheckpointTensor> copies_of(const std::vector<CheckpointTensor>& values, const RankTensors& copies) {
  const auto model = std::ranges::find(copies.whole, "model", &CheckpointGroup::name);
  WELKIN_CHECK(model != copies.whole.end(), "what is voted on is saved");
  std::vector<CheckpointTensor> found;
  for (const CheckpointTensor& value : values) {
    const auto copy = std::ranges::find(model->tensors, value.name, &CheckpointTensor::name);
    WELKIN_CHECK(copy != model->tensors.end(), "what is voted on is saved");
    found.push_back(*copy);
  }
  return found;
}

}  // namespace

// If the first rank has no copy, or parts are put together on it, the vote is taken at once, before anything is written.
bool CheckpointWriter::votes_beside(SaveTask& task, const WholeGroups& whole) {
  if (!task.vote) return false;
  const bool can_wait = is_first() && !whole.has_parts() && takes_copy({.whole = whole.groups(), .pieces = {}});
  if (told_by_first(world_, int64_t{can_wait}) != 0) return true;
  const ReplicaVote vote = *std::exchange(task.vote, {});
  vote.compare(hashes_of(vote.values));
  return false;
}

// A rank without memory for a copy of its own hashes its values now.
void CheckpointWriter::begin_vote(SaveTask task, const WholeGroups& whole) {
  const std::vector<CheckpointTensor>& values = task.vote->values;
  RankTensors own{.whole = whole.groups(), .pieces = {}};
  if (!is_first()) own.whole = {{.name = "model", .tensors = values}};
  is_beside_ = is_first() || takes_copy(own);
  RankTensors copies;
  if (is_beside_) copies = copy_.take(own);
  std::vector<CheckpointTensor> hashed = is_beside_ ? copies_of(values, copies) : values;
  job_ = std::async(is_beside_ ? std::launch::async : std::launch::deferred, [hashed = std::move(hashed)] {
    Written written;
    written.hashes = hashes_of(hashed);
    return written;
  });
  if (!is_beside_) job_.wait();
  pending_ = Pending{.task = std::move(task), .copies = std::move(copies)};
}

void CheckpointWriter::end_vote() {
  Pending pending = *std::exchange(pending_, {});
  pending.task.vote->compare(job_.get().hashes);
  is_first() ? write_beside(std::move(pending.task), std::move(pending.copies)) : receive_copies(pending.task);
}

}  // namespace welkin::train
