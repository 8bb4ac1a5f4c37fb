// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "config/schema/checkpoint_dirs.h"
#include "core/error.h"
#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/text.h"
#include "train/checkpoint/aside_folder.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step_";

std::optional<int64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return {};
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || rest != end || step < 0) return {};
  return step;
}

}  // namespace

fs::path CheckpointStore::path_of(int64_t step) const { return folder_ / cat(kPrefix, step); }

void CheckpointStore::put_back() const { put_back_replaced(folder_); }

std::vector<int64_t> CheckpointStore::steps() const {
  std::vector<int64_t> found;
  for (const fs::path& path : entries_of(folder_)) {
    if (const auto step = step_of(path)) found.push_back(*step);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

bool CheckpointStore::wants(const CheckpointIndex& index) const {
  const fs::path target = path_of(index.position.iteration);
  make_folders(folder_);
  if (!is_there(target)) return true;
  try {
    const Checkpoint stored(target);
    // The same place may be saved before and after its validation.
    return stored.index().position != index.position || stored.index().validation_loss != index.validation_loss;
  } catch (const CheckpointError&) {
    return true;  // damaged
  }
}

void CheckpointStore::save(const CheckpointIndex& index, const std::vector<CheckpointGroup>& groups) {
  if (wants(index)) write_checkpoint(path_of(index.position.iteration), index, groups);
}

void CheckpointStore::copy_from(const fs::path& checkpoint, const CheckpointIndex& index) {
  if (!wants(index)) return;
  const fs::path target = path_of(index.position.iteration);
  try {
    const AsideFolder aside(target);
    for (const fs::path& file : entries_of(checkpoint)) {
      const fs::path copy = aside.path() / file.filename();
      std::error_code problem;
      fs::copy_file(file, copy, problem);
      if (problem) throw file_error("copy a file to", copy, problem.value());
    }
    publish_over(aside.path(), target);
  } catch (const DataError& error) {
    throw cannot_be_saved(target, index.position.iteration, error.what());
  }
}

void CheckpointStore::mark_best(const BestRecord& record) {
  nlohmann::json text = {{"step", record.step}, {"validation_loss", record.validation_loss}};
  if (!record.metric.empty()) text.update({{"metric", record.metric}, {"value", record.value}});
  write_file_atomically(folder_ / "best.json", text.dump() + "\n");
}

std::optional<BestRecord> CheckpointStore::best() const {
  try {
    const auto text = nlohmann::json::parse(read_file(folder_ / "best.json", 1 << 16));
    const auto& loss = text.at("validation_loss");  // null where another metric counts and the loss is not finite
    if (!text.at("step").is_number_integer()) return {};
    return BestRecord{.step = text.at("step").get<int64_t>(),
                      .validation_loss = loss.is_null() ? std::numeric_limits<double>::quiet_NaN() : loss.get<double>(),
                      .metric = text.value("metric", ""),
                      .value = text.value("value", 0.0)};
  } catch (const DataError&) {
    return {};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

namespace {

double judged_by(const BestRecord& record) { return record.metric.empty() ? record.validation_loss : record.value; }

// The record of a checkpoint that says it was the best of its run. Those of earlier versions say it by their loss alone.
std::optional<BestRecord> best_in(const fs::path& folder, const std::string& metric) {
  try {
    const Checkpoint stored(folder, OpeningCheck::Sizes);
    const CheckpointIndex& index = stored.index();
    if (!index.best_loss || index.best_metric != metric) return {};
    const bool is_best = index.best_step ? *index.best_step == index.position.iteration && index.validation_loss
                                         : metric.empty() && index.validation_loss == index.best_loss;
    if (!is_best) return {};
    BestRecord record{.step = index.position.iteration, .validation_loss = *index.validation_loss, .metric = metric};
    if (!metric.empty()) record.value = *index.best_loss;
    return record;
  } catch (const CheckpointError&) {
    return {};
  }
}

}  // namespace

std::optional<BestRecord> CheckpointStore::repair_best(const std::string& metric, std::optional<int64_t> believed, int64_t step) {
  const std::optional<BestRecord> named = best();
  std::optional<BestRecord> found = believed && *believed <= step ? best_in(path_of(*believed), metric) : std::nullopt;
  if (!found) {
    const auto consider = [&](const std::optional<BestRecord>& record) {
      if (record && (!found || judged_by(*record) < judged_by(*found))) found = record;
    };
    for (const int64_t held : steps()) {
      if (held <= step) consider(best_in(path_of(held), metric));
    }
    if (named && named->metric == metric && named->step <= step && is_there(path_of(named->step))) consider(named);
  }
  if (found && (!named || named->step != found->step || named->metric != metric)) mark_best(*found);
  std::error_code ignored;
  if (!found && named && !is_there(path_of(named->step))) fs::remove(folder_ / "best.json", ignored);
  return found;
}

void CheckpointStore::prune(int64_t keep, int64_t keep_every) {
  const auto best_record = best();
  const std::vector<int64_t> all = steps();
  for (size_t i = static_cast<size_t>(keep); i < all.size(); ++i) {
    const bool is_best = best_record && best_record->step == all[i];
    const bool is_kept = keep_every > 0 && all[i] % keep_every == 0;
    if (!is_best && !is_kept) remove_folder(path_of(all[i]));
  }
}

void CheckpointStore::continue_from(int64_t step) {
  std::error_code ignored;
  for (const int64_t later : steps()) {
    if (later <= step) break;
    fs::path aside = path_of(later);
    aside += ".damaged";
    fs::remove_all(aside, ignored);
    fs::rename(path_of(later), aside, ignored);
  }
  for (const fs::path& path : entries_of(folder_)) {
    if (is_left_over(path)) fs::remove_all(path, ignored);
  }
}

std::optional<fs::path> CheckpointStore::move_aside() {
  put_back_replaced(folder_);
  if (steps().empty()) return {};
  fs::path target;
  for (int number = 1; target.empty() || is_there(target); ++number) {
    target = folder_.parent_path() / cat(folder_.filename().string(), ".old-", number);
  }
  std::error_code error;
  fs::rename(folder_, target, error);
  if (error) {
    throw CheckpointError("checkpoint",
                          cat("an earlier run's folder cannot be moved: path=", folder_.string(), ", reason=", error.message()),
                          "Choose another --run_num");
  }
  return target;
}

namespace {

int64_t chosen_step(const CheckpointStore& store, const std::vector<int64_t>& steps, const std::string& choice) {
  if (choice == "newest") return steps.front();
  if (choice == "best") {
    const auto best = store.best();
    return best ? best->step : steps.front();
  }
  for (const int64_t step : steps) {
    if (std::to_string(step) == choice) return step;
  }
  throw CheckpointError("checkpoint",
                        cat("there is no such checkpoint: folder=", store.folder().string(), ", checkpoint=", choice),
                        cat("Choose best, newest, or a step: ", join(steps, ", ")));
}

std::string with_node(std::string path, int64_t node) {
  constexpr std::string_view kNode = "{node}";
  for (size_t at = path.find(kNode); at != std::string::npos; at = path.find(kNode)) {
    path.replace(at, kNode.size(), std::to_string(node));
  }
  return path;
}

}  // namespace

std::vector<CheckpointPlace> checkpoint_places(const config::LoopConfig& config, const fs::path& folder, int64_t node) {
  std::vector<CheckpointPlace> places{{.name = {},
                                       .store = CheckpointStore(folder),
                                       .interval = config.checkpoint_interval.steps,
                                       .keep = config.keep_checkpoints,
                                       .keep_every = config.keep_every,
                                       .is_auto = config.checkpoint_interval.is_auto}};
  const fs::path run = folder.parent_path(), size = run.parent_path();
  std::string problem;
  for (const config::CheckpointDir& dir : config::parse_checkpoint_dirs(config.checkpoint_dirs, problem)) {
    const auto own = fs::path(dir.neighbour ? with_node(dir.path, node) : dir.path) / size.parent_path().filename() /
                     size.filename() / run.filename();
    places.push_back({.name = dir.name,
                      .store = CheckpointStore(own),
                      .interval = dir.interval.value_or(config.checkpoint_interval.steps),
                      .keep = dir.keep.value_or(config.keep_checkpoints),
                      .is_auto = !dir.interval && config.checkpoint_interval.is_auto,
                      .on_nodes = dir.neighbour});
  }
  return places;
}

std::optional<Checkpoint> first_good(const std::vector<fs::path>& folders, const OpenCheckpoint& open,
                                     const std::function<void(const std::string&)>& report) {
  for (const fs::path& folder : folders) {
    try {
      return open(folder);
    } catch (const CheckpointError& error) {
      report(error.what());
    }
  }
  return {};
}

fs::path find_checkpoint(const fs::path& run_folder, const std::string& choice) {
  const CheckpointStore store(run_folder / "checkpoints");
  const std::vector<int64_t> steps = store.steps();
  if (steps.empty()) {
    throw CheckpointError("checkpoint", cat("the run has no checkpoint: path=", run_folder.string()),
                          "Give the folder of a run that has saved one (<expdir>/<config>/<W>GPU/<run_num>)");
  }
  return store.path_of(chosen_step(store, steps, choice));
}

}  // namespace welkin::train
