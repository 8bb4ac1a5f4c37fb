// SPDX-License-Identifier: Apache-2.0
#include "observe/report/run_history.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "observe/report/labelled_path.h"

namespace welkin::observe {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestEventFile = uint64_t{1} << 30;
constexpr uint64_t kLargestLog = uint64_t{1} << 28;
constexpr std::string_view kEventFileName = "events.out.tfevents.";
constexpr int kFoldersAbove = 4;  // logs, run_num, <W>GPU, preset

bool is_event_file(const fs::path& path) { return path.filename().string().starts_with(kEventFileName); }

// Maps each folder to its event files in the order of their names, which begin with the time.
std::map<fs::path, std::vector<fs::path>> event_files(const fs::path& path) {
  std::map<fs::path, std::vector<fs::path>> found;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) error.clear();
  if (fs::is_regular_file(status)) found[path.has_parent_path() ? path.parent_path() : fs::path(".")].push_back(path);
  if (fs::is_directory(status)) {
    fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error), end;
    for (; !error && at != end; at.increment(error)) {
      if (is_event_file(at->path()) && at->is_regular_file(error)) found[at->path().parent_path()].push_back(at->path());
    }
  }
  if (error)
    throw DataError("report", cat("a folder cannot be read: path=", path.string(), ", ", error.message()),
                    "Give a run folder or an event file");
  if (found.empty()) {
    throw DataError("report", cat("no event file: path=", path.string()),
                    cat("Give a run folder, a folder above, or a file ", kEventFileName, "*"));
  }
  for (auto& [folder, files] : found) std::sort(files.begin(), files.end());
  return found;
}

// Reads "64" of "global_batch_size 64" and the like.
std::optional<int64_t> number_behind(std::string_view text, size_t at) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() + at || value < 1) return std::nullopt;
  return value;
}

// Takes the last value: a resumed run may have changed it.
std::optional<int64_t> batch_of_log(const fs::path& run) {
  constexpr std::string_view kKey = " global_batch_size ";
  const fs::path log = run / "out.log";
  if (!fs::is_regular_file(log)) return std::nullopt;
  const std::string text = read_file(log, kLargestLog);
  const size_t at = text.rfind(kKey);
  return at == std::string::npos ? std::nullopt : number_behind(text, at + kKey.size());
}

std::optional<int64_t> devices_of_name(const std::string& name) {
  constexpr std::string_view kEnd = "GPU";
  if (!name.ends_with(kEnd) || name.find_first_not_of("0123456789") != name.size() - kEnd.size()) return std::nullopt;
  return number_behind(name, 0);
}

void add_facts(const fs::path& folder, RunHistory& run) {
  fs::path above = folder;
  for (int i = 0; i < kFoldersAbove; ++i, above = above.parent_path()) {
    if (!run.global_batch && i < 2) run.global_batch = batch_of_log(above);
    if (!run.devices) run.devices = devices_of_name(above.filename().string());
    if (!above.has_parent_path()) return;
  }
}

// The folder with the log: this one or its parent.
fs::path run_folder_of(const fs::path& folder) {
  const fs::path here = fs::absolute(folder).lexically_normal();
  return fs::exists(here / "out.log") || here.filename() != "logs" ? here : here.parent_path();
}

// The run folder's path without "logs" and without the prefix common to all tutorials' paths.
std::string label_of(const fs::path& folder) {
  fs::path run = fs::absolute(folder).lexically_normal();
  while (!run.has_filename() || run.filename() == "logs") run = run.parent_path();
  std::vector<std::string> parts;
  for (const fs::path& part : run.relative_path()) parts.push_back(part.string());
  constexpr size_t kShown = 3;  // preset, <W>GPU, run_num
  if (parts.size() > kShown) parts.erase(parts.begin(), parts.end() - kShown);
  return join(parts, "/");
}

fs::file_time_type last_write_of(const fs::path& file) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(file, error);
  return error ? fs::file_time_type::min() : time;
}

// A damaged file affects neither other runs nor the values before the damage.
void read_files(const std::vector<fs::path>& files, RunHistory& run, bool is_only) {
  run.last_write = fs::file_time_type::min();
  for (const fs::path& file : files) {
    run.last_write = std::max(run.last_write, last_write_of(file));
    try {
      const std::string bytes = read_file(file, kLargestEventFile);
      read_events(std::as_bytes(std::span(bytes)), file.string(), run.scalars);
    } catch (const DataError& error) {
      run.damage = error.what();
      if (is_only && run.scalars.by_tag.empty() && &file == &files.back()) throw;
    }
  }
}

double last_wall_time(const EventScalars& scalars) {
  double last = scalars.first_wall_time;
  for (const auto& [tag, points] : scalars.by_tag) {
    for (const ScalarPoint& point : points) last = std::max(last, point.wall_time);
  }
  return last;
}

std::optional<double> median_of(const EventScalars& scalars, const std::string& tag) {
  const auto found = scalars.by_tag.find(tag);
  if (found == scalars.by_tag.end() || found->second.empty()) return std::nullopt;
  std::vector<double> values;
  for (const ScalarPoint& point : found->second) {
    if (std::isfinite(point.value)) values.push_back(point.value);
  }
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The ViT's programs log samples per second, the U-Net's log iterations.
std::optional<double> samples_per_second(const RunHistory& run) {
  if (const auto samples = median_of(run.scalars, "Avg samples per sec")) return samples;
  const auto iterations = median_of(run.scalars, "Avg iters per sec");
  if (!iterations || !run.global_batch) return std::nullopt;
  return *iterations * static_cast<double>(*run.global_batch);
}

}  // namespace

std::vector<RunHistory> read_runs(const std::string& argument) {
  const LabelledPath given = parse_labelled_path(argument);
  const auto found = event_files(given.path);
  std::vector<RunHistory> runs;
  for (const auto& [folder, files] : found) {
    RunHistory run{.label = given.label.empty() ? label_of(folder) : given.label};
    if (!given.label.empty() && found.size() > 1) run.label += cat(" ", label_of(folder));
    read_files(files, run, /*is_only=*/found.size() == 1);
    add_facts(folder, run);
    run.folder = run_folder_of(folder);
    run.last_write = std::max(run.last_write, last_write_of(run.folder / "status.json"));
    run.facts = read_run_facts(run.folder);
    if (!run.damage.empty()) run.facts.environment.emplace_back("damaged", run.damage);
    runs.push_back(std::move(run));
  }
  return runs;
}

void tell_apart(std::vector<RunHistory>& runs) {
  std::map<std::string, std::vector<RunHistory*>> by_label;
  for (RunHistory& run : runs) by_label[run.label].push_back(&run);
  for (const auto& runs_of_label : by_label) {
    const std::vector<RunHistory*>& same = runs_of_label.second;
    std::vector<fs::path> above;
    for (const RunHistory* run : same) above.push_back(run->folder);
    const auto labels = [&same] {
      std::set<std::string> different;
      for (const RunHistory* run : same) different.insert(run->label);
      return different.size();
    };
    const auto can_go_on = [&above] {
      return std::ranges::any_of(above, [](const fs::path& p) { return p.has_relative_path(); });
    };
    for (; labels() < same.size() && can_go_on();
         std::ranges::for_each(above, [](fs::path& path) { path = path.parent_path(); })) {
      std::set<fs::path> names;
      for (const fs::path& path : above) names.insert(path.filename());
      if (names.size() == 1) continue;
      for (size_t i = 0; i < same.size(); ++i) same[i]->label = cat(above[i].filename().string(), "/", same[i]->label);
    }
  }
}

RunFigures run_figures(const RunHistory& run, const std::string& score, std::optional<double> target) {
  RunFigures figures{.label = run.label, .devices = run.devices, .global_batch = run.global_batch};
  figures.seconds = last_wall_time(run.scalars) - run.scalars.first_wall_time;
  figures.samples_per_second = samples_per_second(run);
  for (const auto& [tag, points] : run.scalars.by_tag) {
    for (const ScalarPoint& point : points) figures.steps = std::max(figures.steps, point.step);
  }
  const auto found = run.scalars.by_tag.find(score);
  if (found == run.scalars.by_tag.end()) return figures;
  for (const ScalarPoint& point : found->second) {
    if (!std::isfinite(point.value)) continue;
    if (!figures.best || point.value < figures.best->value) figures.best = point;
    if (target && !figures.reached && point.value <= *target) figures.reached = point;
  }
  if (!figures.reached) return figures;
  figures.seconds_to_target = figures.reached->wall_time - run.scalars.first_wall_time;
  if (run.devices) figures.device_hours = *figures.seconds_to_target * static_cast<double>(*run.devices) / 3600;
  return figures;
}

std::optional<double> common_target(const std::vector<RunHistory>& runs, const std::string& score) {
  std::optional<double> target;
  for (const RunHistory& run : runs) {
    const auto best = run_figures(run, score, std::nullopt).best;
    if (!best) continue;
    const std::vector<ScalarPoint>& points = run.scalars.by_tag.at(score);
    const auto first = std::ranges::find_if(points, [](const ScalarPoint& point) { return std::isfinite(point.value); });
    const bool only_got_worse = points.size() > 1 && best->step == first->step;  // also if later values are not finite
    if (!only_got_worse && (!target || best->value > *target)) target = best->value;
  }
  return target;
}

}  // namespace welkin::observe
