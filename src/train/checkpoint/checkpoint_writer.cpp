// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"

namespace welkin::train {
namespace {

// Called after a checkpoint was written in its place.
void keep_house(CheckpointPlace& place, const std::optional<BestRecord>& best) {
  if (best) place.store.mark_best(*best);
  place.store.prune(place.keep, place.keep_every);
}

bool has_parts(const std::vector<CheckpointGroup>& groups) {
  return std::ranges::any_of(groups, [](const CheckpointGroup& group) {
    return std::ranges::any_of(group.tensors,
                               [](const CheckpointTensor& tensor) { return static_cast<bool>(tensor.make_whole); });
  });
}

std::function<std::optional<CheckpointIndex>()> index_if_new(const SaveTask& task, CheckpointPlace& place) {
  return [&task, &place]() -> std::optional<CheckpointIndex> {
    if (!place.store.wants(task.index)) return {};
    return task.index;
  };
}

}  // namespace

// Writes into every place that takes it. Parts of tensors are put together once: later places get copies of the files of the
// first place that has them.
CheckpointWriter::Written CheckpointWriter::write_to_places(const SaveTask& task, const std::vector<CheckpointGroup>& groups,
                                                            const Again& again) {
  Written written;
  const bool is_once = has_parts(groups);
  for (CheckpointPlace* place : task.places) {
    const bool is_first = place == task.places.front();
    if (is_once && !is_first && written.folder.empty()) again();
    try {
      if (!is_once || written.folder.empty()) {
        place->store.save(task.index, groups);
      } else {
        place->store.copy_from(written.folder, task.index);
      }
      if (written.folder.empty()) written.folder = place->store.path_of(task.index.position.iteration);
      written.places.push_back(place);
      keep_house(*place, is_first ? task.best : std::nullopt);
      if (is_first && task.best) written.marked = task.best->step;
    } catch (const CommError&) {
      throw;  // values come from other ranks: nobody is there to send them
    } catch (const Error& error) {
      written.errors.emplace_back(error.what());
    }
  }
  return written;
}

// Those of all places wait for one after the other, through one group: a sign for the first of them is one for all.
std::unique_ptr<SignThread> CheckpointWriter::patience_of_receivers(const SaveTask& task) const {
  const auto place =
      std::ranges::find_if(task.places, [](const CheckpointPlace* one) { return static_cast<bool>(one->copy_out); });
  if (place == task.places.end()) return nullptr;
  return std::make_unique<SignThread>(deadline_of(world_), (*place)->ask_patience);
}

// A receiver that waits for a copy also hears if there is none. A copy that fails is no reason to end a run.
void CheckpointWriter::send_copies(const SaveTask& task, Written& written) {
  for (CheckpointPlace* place : task.places) {
    if (!place->copy_out) continue;
    const bool is_written = std::ranges::find(written.places, place) != written.places.end();
    try {
      place->copy_out(is_written ? std::optional(place->store.path_of(task.index.position.iteration)) : std::nullopt, {});
    } catch (const std::exception& error) {
      written.errors.emplace_back(error.what());
    }
  }
}

void CheckpointWriter::receive_copies(const SaveTask& task) {
  if (!std::ranges::any_of(task.places, [](const CheckpointPlace* place) { return static_cast<bool>(place->copy_in); })) return;
  job_ = std::async(std::launch::async, [places = task.places] {
    Written written;
    for (CheckpointPlace* place : places) {
      try {
        if (place->copy_in) place->copy_in();
      } catch (const std::exception& error) {
        written.errors.emplace_back(error.what());
      }
    }
    return written;
  });
}

CheckpointWriter::CheckpointWriter(const parallel::Group& world, WriterOptions options)
    : world_(world), options_(std::move(options)), waits_(!options_.copies), copy_(options_.device) {}

void CheckpointWriter::prepare(std::vector<CheckpointGroup> groups, const TensorLayout& layout) {
  if (!options_.copies || has_fetched_values(groups)) return;
  bool has_copy = false;
  if (options_.is_sharded) {
    has_copy = takes_copy(own_tensors(groups, layout));
  } else {
    const WholeGroups whole(std::move(groups), layout);
    has_copy = is_first() && takes_copy({.whole = whole.groups(), .pieces = {}});
  }
  if (!has_copy) return;
  job_ = std::async(std::launch::async, [this] {
    copy_.touch();
    return Written{};
  });
}

// A lack of memory for the copy is no reason to end a run: without a copy a step waits for the files.
bool CheckpointWriter::takes_copy(const RankTensors& own) {
  if (!options_.copies || has_fetched_values(own.whole) || has_fetched_values(own.pieces)) return false;
  try {
    copy_.reserve(own);
    return true;
  } catch (const std::exception&) {
    options_.copies = false;
    copy_ = HostCopy(options_.device);
    options_.report(
        "There is no memory for a copy of the training state: from now on a step waits until its checkpoint is written");
    return false;
  }
}

bool CheckpointWriter::is_writing() const {
  if (!shared_.empty() || pending_) return true;
  return job_.valid() && job_.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
}

// The first rank decides and tells the others.
bool CheckpointWriter::skips_this() {
  if (!options_.skips) return false;
  const bool skips = world_.size() == 1 ? is_writing() : told_by_first(world_, int64_t{is_writing()}) != 0;
  if (skips) ++num_skipped_;
  return skips;
}

void CheckpointWriter::save(SaveTask task, const TensorLayout& layout) {
  if (!task.best && skips_this()) return;
  const Stopwatch held;
  finish();
  since_begin_.restart();
  is_beside_ = false;
  try {
    options_.is_sharded ? save_pieces(std::move(task), layout) : save_whole(std::move(task), layout);
  } catch (const CommError&) {
    throw;  // a rank that is missing ends the run
  } catch (const Error& error) {
    options_.report(error.what());
  }
  last_held_s_ = held.seconds();
  if (!is_beside_) return;
  ++num_beside_;
  held_s_ += last_held_s_;
  most_held_s_ = std::max(most_held_s_, last_held_s_);
}

// Replicas are equal, so the first rank's copy stands for all. Parts of tensors are put together on it; all ranks take part.
void CheckpointWriter::save_whole(SaveTask task, const TensorLayout& layout) {
  WholeGroups whole(std::exchange(task.groups, {}), layout);
  if (votes_beside(task, whole)) return begin_vote(std::move(task), whole);
  if (!is_first()) {
    receive_copies(task);  // beside what follows
    return follow_first(whole);
  }
  FirstWrites writes(world_);
  if (!takes_copy({.whole = whole.groups(), .pieces = {}})) return write_whole(task, writes, whole);
  RankTensors copies;
  try {
    copies = copied(writes, whole, copy_);
  } catch (const CommError&) {
    throw;
  } catch (const Error&) {
    writes.end();
    Written nothing;
    send_copies(task, nothing);
    throw;
  }
  writes.end();
  is_beside_ = true;
  write_beside(std::move(task), std::move(copies));
}

// Without a copy all wait until the files are there: those that went on would wait for the first rank in the next step.
void CheckpointWriter::write_whole(const SaveTask& task, FirstWrites& writes, WholeGroups& whole) {
  auto patience = patience_of_receivers(task);
  Written written = write_to_places(task, whole.groups(), begin_writing(writes, whole));
  patience.reset();
  written.seconds = since_begin_.seconds();
  send_copies(task, written);
  writes.end();
  note(written);
}

void CheckpointWriter::write_beside(SaveTask task, RankTensors copies) {
  job_ = std::async(std::launch::async, [this, task = std::move(task), copies = std::move(copies), begin = since_begin_] {
    auto patience = patience_of_receivers(task);
    Written written = write_to_places(task, copies.whole, {});  // the copies are whole: no parts are left
    patience.reset();
    written.seconds = begin.seconds();
    send_copies(task, written);
    return written;
  });
}

void CheckpointWriter::begin_shared(const SaveTask& task) {
  shared_places_.clear();
  for (CheckpointPlace* place : task.places) {
    try {
      const std::filesystem::path folder = place->store.path_of(task.index.position.iteration);
      auto begun = place->on_nodes ? SharedCheckpoint::begin_on_nodes(world_, folder, index_if_new(task, *place), place->leader)
                                   : SharedCheckpoint::begin(world_, folder, index_if_new(task, *place));
      if (!begun) continue;
      shared_.push_back(std::move(begun));
      shared_places_.push_back(place);
    } catch (const CommError&) {
      throw;
    } catch (const Error& error) {
      options_.report(error.what());
    }
  }
  shared_best_ = task.best;
  best_place_ = task.places.front();
}

// Many ranks hold pieces of one training state: each writes its own.
void CheckpointWriter::save_pieces(SaveTask task, const TensorLayout& layout) {
  begin_shared(task);
  if (shared_.empty()) return;
  RankTensors own = own_tensors(task.groups, layout);
  if (!is_first()) own.whole.clear();
  is_beside_ = takes_copy(own);
  write_together(world_, [&] { begin_pieces(std::move(own)); });
  if (waits_) finish();  // else with the next step
}

// Beside training from a copy, else at once.
void CheckpointWriter::begin_pieces(RankTensors own) {
  try {
    if (is_beside_) own = copy_.take(own);
  } catch (const Error& error) {  // the others wait for this rank's word
    for (const auto& checkpoint : shared_) checkpoint->fail(error.what());
    job_ = std::async(std::launch::deferred, [] { return Written{}; });
    return;
  }
  job_ = std::async(is_beside_ ? std::launch::async : std::launch::deferred, [this, own = std::move(own)] {
    for (const auto& checkpoint : shared_) checkpoint->write(own);
    return Written{};
  });
  if (!is_beside_) job_.wait();
}

bool CheckpointWriter::has_written() const {
  if (!pending_ && (shared_.empty() || is_exchanged_)) return false;
  return job_.wait_for(std::chrono::seconds(0)) != std::future_status::timeout;
}

CheckpointWriter::Written CheckpointWriter::published() const {
  Written written;
  for (size_t i = 0; i < shared_.size(); ++i) {
    CheckpointPlace& place = *shared_places_[i];
    try {
      shared_[i]->publish();
      if (written.folder.empty()) written.folder = shared_[i]->folder();
      written.places.push_back(&place);
      written.files.push_back(shared_[i]->node_files());
      // Nodes that publish separately keep one more: until the next checkpoint, some nodes may not have the newest.
      if (place.on_nodes) {
        place.store.prune(place.keep + 1);
      } else {
        const bool is_marked = &place == best_place_ && is_first();
        keep_house(place, is_marked ? shared_best_ : std::nullopt);
        if (is_marked && shared_best_) written.marked = shared_best_->step;
      }
    } catch (const Error& error) {
      written.errors.emplace_back(error.what());
    }
  }
  written.seconds = since_begin_.seconds();
  exchange_copies(written);
  return written;
}

// Every node sends and takes, one place after the other. A copy that fails is no reason to end a run.
void CheckpointWriter::exchange_copies(Written& written) const {
  const auto without_error = [](const std::function<void()>& work) -> std::string {
    try {
      work();
      return {};
    } catch (const std::exception& error) {
      return error.what();
    }
  };
  for (size_t i = 0; i < shared_.size(); ++i) {
    const CheckpointPlace& place = *shared_places_[i];
    if (!place.copy_out) continue;
    const auto found = std::ranges::find(written.places, &place);
    const bool is_written = found != written.places.end();
    std::future<std::string> taken = std::async(std::launch::async, without_error, place.copy_in);
    const std::string sent = without_error([&] {
      if (!is_written) return place.copy_out(std::nullopt, {});
      place.copy_out(shared_[i]->folder(), written.files[static_cast<size_t>(found - written.places.begin())]);
    });
    for (const std::string& problem : {sent, taken.get()}) {
      if (!problem.empty()) written.errors.push_back(problem);
    }
  }
}

void CheckpointWriter::exchange_and_publish() {
  job_.get();
  for (const auto& checkpoint : shared_) checkpoint->exchange(world_);
  for (size_t i = shared_.size(); i-- > 0;) {
    if (shared_[i]->publishes()) continue;
    shared_.erase(shared_.begin() + static_cast<std::ptrdiff_t>(i));
    shared_places_.erase(shared_places_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (shared_.empty()) return;
  is_exchanged_ = true;
  job_ = std::async(std::launch::async, [this] { return published(); });
}

void CheckpointWriter::note(const Written& written) {
  if (written.seconds > 0) save_s_ = written.seconds;
  if (!written.folder.empty()) saved_.push_back(written.folder);
  if (written.marked) marked_ = written.marked;
  for (const std::string& error : written.errors) options_.report(error);
}

void CheckpointWriter::take_result() {
  const Written written = job_.get();
  shared_.clear();
  is_exchanged_ = false;
  note(written);
}

void CheckpointWriter::collect(bool all_have_written) {
  if (pending_) {
    if (all_have_written) end_vote();
    return;
  }
  const bool waits_for_all = !shared_.empty() && !is_exchanged_;
  if (waits_for_all) {
    if (all_have_written) exchange_and_publish();
    return;
  }
  if (job_.valid() && job_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) take_result();
}

void CheckpointWriter::finish() {
  if (pending_) end_vote();
  if (!shared_.empty() && !is_exchanged_) {
    await_jobs();
    exchange_and_publish();
  }
  await_jobs();
  if (job_.valid()) take_result();
}

// Every rank calls it.
void CheckpointWriter::await_jobs() const {
  await_all(world_, [this](std::chrono::milliseconds most) {
    return !job_.valid() || job_.wait_for(most) != std::future_status::timeout;
  });
}

void CheckpointWriter::wait_for_own() const {
  if (job_.valid()) job_.wait();
}

std::string CheckpointWriter::summary() const {
  if (num_beside_ == 0) return {};
  const std::string skipped = num_skipped_ > 0 ? cat(", ", num_skipped_, " left out while another was being written") : "";
  const auto milliseconds = [](double seconds) { return cat(std::lround(seconds * 1000), " ms"); };
  return cat("Checkpoints written beside training: ", num_beside_, skipped, ". The copy of ",
             format_bytes(static_cast<uint64_t>(copy_.bytes())), " held a step for ",
             milliseconds(held_s_ / static_cast<double>(num_beside_)), " on average, ", milliseconds(most_held_s_), " at most");
}

}  // namespace welkin::train
