// SPDX-License-Identifier: Apache-2.0
// Checkpoints that a run waits for, and the passes in which ranks put parts of tensors together while one writes.
#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "train/checkpoint/checkpoint_writer.h"

namespace welkin::train {

namespace {

// What the first rank asks of the others.
constexpr int64_t kNextPart = FirstWrites::kEnd + 1;
constexpr int64_t kAllParts = FirstWrites::kEnd + 2;  // one after the other, without waiting for a disk
constexpr int64_t kAgain = FirstWrites::kEnd + 3;     // from the first part on

}  // namespace

// On the first rank, before it writes. The others are in follow_first().
CheckpointWriter::Again CheckpointWriter::begin_writing(FirstWrites& writes, WholeGroups& whole) {
  whole.call_others_by([&writes](const std::function<void()>& exchange) { writes.ask(kNextPart, exchange); });
  return [&] { writes.ask(kAgain, [&] { whole.begin_again(); }); };
}

// The same before it copies. Throws what HostCopy::take() throws; the others have done their part then.
RankTensors CheckpointWriter::copied(FirstWrites& writes, WholeGroups& whole, HostCopy& copy) {
  if (!whole.has_parts()) return copy.take({.whole = whole.groups(), .pieces = {}});
  RankTensors copies;
  writes.ask(kAllParts, [&] {
    try {
      copies = copy.take({.whole = whole.groups(), .pieces = {}});
    } catch (const CommError&) {
      throw;  // nobody is there to join
    } catch (const Error&) {
      whole.join_others();
      throw;
    }
    whole.join_others();
  });
  return copies;
}

void CheckpointWriter::follow_first(WholeGroups& whole) const {
  while (true) {
    const int64_t word = FirstWrites::next_word(world_);
    if (word == kNextPart) whole.join_next();
    if (word == kAllParts) whole.join_others();
    if (word == kAgain) whole.begin_again();
    if (word == FirstWrites::kEnd) return;
  }
}

CheckpointWriter::SavedNow CheckpointWriter::save_now(SaveTask task, const TensorLayout& layout) {
  finish();
  const Stopwatch watch;
  SavedNow saved = options_.is_sharded ? save_pieces_now(task, layout) : save_whole_now(std::move(task), layout);
  save_s_ = watch.seconds();
  return saved;
}

// The others hear the result. If they went on, they would find the first rank gone without knowing why.
CheckpointWriter::SavedNow CheckpointWriter::save_whole_now(SaveTask task, const TensorLayout& layout) {
  constexpr int64_t kNowhere = -1;
  WholeGroups whole(std::exchange(task.groups, {}), layout);
  SavedNow saved;
  if (!is_first()) {
    follow_first(whole);
    const int64_t number = told_by_first(world_, kNowhere);
    if (number == kNowhere) {
      throw CheckpointError("checkpoint", cat("the first rank could not save the state: step=", task.index.position.iteration),
                            "See what it says; earlier checkpoints are untouched");
    }
    saved.place = task.places[static_cast<size_t>(number)];
    return saved;
  }
  FirstWrites writes(world_);
  const Again again = begin_writing(writes, whole);
  std::exception_ptr failure;
  for (CheckpointPlace* place : task.places) {
    if (failure) again();
    try {
      place->store.save(task.index, whole.groups());
      saved.place = place;
      break;
    } catch (const CommError&) {
      throw;  // nobody is there to join
    } catch (const Error& error) {
      saved.errors.emplace_back(error.what());
      if (!failure) failure = std::current_exception();
    }
  }
  writes.end();
  told_by_first(world_, saved.place == nullptr ? kNowhere : std::ranges::find(task.places, saved.place) - task.places.begin());
  if (saved.place == nullptr) std::rethrow_exception(failure);
  return saved;
}

// Disks of single nodes are no place for it: a run that goes on would need all of these nodes.
CheckpointWriter::SavedNow CheckpointWriter::save_pieces_now(const SaveTask& task, const TensorLayout& layout) {
  const RankTensors own = own_tensors(task.groups, layout);
  SavedNow saved;
  std::exception_ptr failure;
  for (CheckpointPlace* place : task.places) {
    if (place->on_nodes) continue;
    const auto index_if_new = [&] { return place->store.wants(task.index) ? std::optional(task.index) : std::nullopt; };
    bool has_failed = false;
    try {
      write_shared_checkpoint(world_, place->store.path_of(task.index.position.iteration), own, index_if_new);
    } catch (const CommError&) {
      throw;
    } catch (const Error& error) {
      has_failed = true;
      saved.errors.emplace_back(error.what());
      if (!failure) failure = std::current_exception();
    }
    if (told_by_first(world_, int64_t{has_failed}) != 0) continue;
    saved.place = place;
    return saved;
  }
  if (failure) std::rethrow_exception(failure);
  return saved;
}

}  // namespace welkin::train
