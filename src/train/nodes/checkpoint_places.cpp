// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/checkpoint_places.h"

#include <algorithm>
#include <functional>
#include <system_error>

#include "core/error.h"
#include "core/printable.h"
#include "core/text.h"
#include "train/checkpoint/shared_checkpoint.h"
#include "train/checkpoint/staged_tensors.h"
#include "train/nodes/gathered_checkpoint.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

struct FoundCheckpoint {
  int64_t step = 0;
  size_t place = 0;
};

}  // namespace

CheckpointPlaces::CheckpointPlaces(const parallel::World& world, const config::LoopConfig& config, const fs::path& folder)
    : world_(world), all_(checkpoint_places(config, folder, world.rank_info().node)) {}

void CheckpointPlaces::connect(bool is_sharded) {
  if (!std::ranges::any_of(all_, &CheckpointPlace::on_nodes)) return;
  map_ = map_of_nodes(world_.world_group(), world_.rank_info().node);
  copies_.emplace(world_, map_, is_sharded);
  for (CheckpointPlace& place : all_) {
    if (!place.on_nodes) continue;
    place.leader = map_.leaders[static_cast<size_t>(map_.node)];
    copies_->attach(place);
  }
}

// Takes the place's lock. Returns the reason against this run's use of the place and a remedy line; empty: none.
std::string CheckpointPlaces::hold(const CheckpointPlace& place, const RunName& own) {
  const fs::path& folder = place.store.folder();
  const std::string where = cat("place=", place.name, ", path=", folder.string());
  try {
    std::string by;
    auto lock = RunLock::of_place(folder, by);
    if (!lock) {
      return cat("another run works in a place of this one: ", where, ", by=", by,
                 "\nName another place or another --run_num, or wait until that run has ended");
    }
    locks_.push_back(std::move(*lock));
  } catch (const DataError&) {
    return {};  // the place cannot be written; saving will report it
  }
  place.store.put_back();
  const auto owner = owner_of(folder);
  if (!owner || is_own(*owner, own) || place.store.steps().empty()) return {};
  return cat("a place holds the checkpoints of another run: ", where, ", run=", printable(owner->id), " in ",
             printable(owner->folder), "\nName another place or another --run_num, or move that folder away if nobody needs it");
}

// The id of this run. If a run has lost its folder, its places may still have the id.
std::string CheckpointPlaces::id_of_run(bool resumes, const RunName& own) const {
  if (!resumes) return draw_run_id();
  if (!own.id.empty()) return own.id;
  for (size_t i = 1; i < all_.size(); ++i) {
    const auto owner = owner_of(all_[i].store.folder());
    if (owner && is_own(*owner, own)) return owner->id;
  }
  return draw_run_id();
}

void CheckpointPlaces::take(bool resumes) {
  if (all_.size() == 1) return;  // the run's folder has a lock of its own
  const fs::path run_folder = own().store.folder().parent_path();
  const std::string known = world_.is_main() ? run_id_in(run_folder) : std::string();
  const RunName before{.id = told(known).front(), .folder = fs::weakly_canonical(fs::absolute(run_folder)).string()};
  std::string problem;
  for (size_t i = 1; i < all_.size() && problem.empty(); ++i) {
    if (looks_after(all_[i])) problem = hold(all_[i], before);
  }
  for (const std::string& text : told(problem)) {
    const size_t end = text.find('\n');
    if (end != std::string::npos) throw ConfigError("checkpoint", text.substr(0, end), text.substr(end + 1));
  }
  const std::string id = world_.is_main() ? id_of_run(resumes, before) : std::string();
  name_ = {.id = told(id).front(), .folder = before.folder};
}

// Returns the texts of all ranks. The blank keeps each part of the collective non-empty.
std::vector<std::string> CheckpointPlaces::told(const std::string& text) const {
  std::vector<std::string> all = texts_of_all(world_.world_group(), cat(" ", text));
  for (std::string& one : all) one.erase(0, 1);
  return all;
}

bool CheckpointPlaces::looks_after(const CheckpointPlace& place) const {
  return place.on_nodes ? map_.leads(world_.rank()) : world_.is_main();
}

// All checkpoint folders, the newest first. The leader's folders count: files may change while others look.
std::vector<fs::path> CheckpointPlaces::folders_found() {
  const parallel::Group& world = world_.world_group();
  for (const CheckpointPlace& place : all_) {
    if (looks_after(place)) place.store.put_back();
  }
  std::vector<FoundCheckpoint> found;
  for (size_t place = 0; place < all_.size(); ++place) {
    const CheckpointStore& store = all_[place].store;
    const auto steps = all_[place].on_nodes ? steps_on_nodes(world, map_, store) : steps_of_first(world, store.steps());
    for (const int64_t step : steps) found.push_back({step, place});
  }
  std::ranges::stable_sort(found, std::greater<>{}, &FoundCheckpoint::step);
  std::vector<fs::path> folders;
  for (const FoundCheckpoint& one : found) folders.push_back(all_[one.place].store.path_of(one.step));
  return folders;
}

Checkpoint CheckpointPlaces::open(const fs::path& folder, const Say& say) {
  for (const CheckpointPlace& place : all_) {
    if (!place.on_nodes || place.store.folder() != folder.parent_path()) continue;
    if (bring_to_all_nodes(world_.world_group(), map_, folder, say)) brought_.push_back(folder);
  }
  return open_shared_checkpoint(world_.world_group(), folder);
}

std::optional<Checkpoint> CheckpointPlaces::newest_good(const Say& warn, const Say& say, size_t& num_found) {
  const std::vector<fs::path> folders = folders_found();
  num_found = folders.size();
  const auto on_first = [this](const Say& tell) {
    return [this, &tell](const std::string& line) {
      if (world_.is_main()) tell(line);
    };
  };
  return first_good(
      folders, [&](const fs::path& folder) { return open(folder, on_first(say)); }, on_first(warn));
}

void CheckpointPlaces::put_aside(const Say& say) {
  for (CheckpointPlace& place : all_) {
    if (!looks_after(place)) continue;
    const auto aside = place.store.move_aside();
    if (aside) say(cat("Checkpoints of an earlier run were moved to ", aside->string()));
  }
}

// Signs the places. An error is left to saving, which reports the reason.
void CheckpointPlaces::sign() const {
  if (all_.size() == 1) return;
  try {
    const fs::path run_folder = own().store.folder().parent_path();
    if (world_.is_main() && run_id_in(run_folder) != name_.id) write_run_id(run_folder, name_.id);
  } catch (const DataError&) {
    return;
  }
  for (size_t i = 1; i < all_.size(); ++i) {
    try {
      if (looks_after(all_[i])) sign_place(all_[i].store.folder(), name_);
    } catch (const DataError&) {
      continue;
    }
  }
}

// Removes folders that were brought to this node for the start and will have no successor.
void CheckpointPlaces::continue_from(int64_t step) {
  for (CheckpointPlace& place : all_) {
    if (!looks_after(place)) continue;
    place.store.continue_from(step);
  }
  sign();
  std::error_code ignored;
  if (copies_ && !copies_->keeps()) {
    for (const fs::path& folder : brought_) fs::remove_all(folder, ignored);
  }
}

void CheckpointPlaces::prune() {
  if (!world_.is_main()) return;
  for (CheckpointPlace& place : all_) place.store.prune(place.keep, place.keep_every);
}

std::string CheckpointPlaces::newest() const {
  std::string path;
  int64_t newest = -1;
  for (const CheckpointPlace& place : all_) {
    const std::vector<int64_t> steps = place.store.steps();
    if (steps.empty() || steps.front() <= newest) continue;
    newest = steps.front();
    path = place.store.path_of(newest).string();
  }
  return path;
}

}  // namespace welkin::train
