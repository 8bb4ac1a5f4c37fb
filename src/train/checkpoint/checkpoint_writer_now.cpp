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

// On the first rank. The others are in join_passes().
CheckpointWriter::Again CheckpointWriter::again_with(WholeGroups& whole) const {
  return [this, &whole] {
    whole.join_others();
    told_by_first(world_, 1);
    whole.begin_again();
  };
}

void CheckpointWriter::end_passes(WholeGroups& whole) const {
  whole.join_others();
  if (whole.has_parts()) told_by_first(world_, 0);
}

void CheckpointWriter::join_passes(WholeGroups& whole) const {
  for (bool goes_on = true; goes_on; whole.begin_again()) {
    whole.join_others();
    goes_on = whole.has_parts() && told_by_first(world_, 0) != 0;
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
    join_passes(whole);
    const int64_t number = told_by_first(world_, kNowhere);
    if (number == kNowhere) {
      throw CheckpointError("checkpoint", cat("the first rank could not save the state: step=", task.index.position.iteration),
                            "See what it says; earlier checkpoints are untouched");
    }
    saved.place = task.places[static_cast<size_t>(number)];
    return saved;
  }
  std::exception_ptr failure;
  for (CheckpointPlace* place : task.places) {
    if (failure && whole.has_parts()) again_with(whole)();
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
  end_passes(whole);
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
