// SPDX-License-Identifier: Apache-2.0
#include "observe/report/mlflow_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"

namespace welkin::observe {
namespace {

namespace fs = std::filesystem;

constexpr double kMillisecondsPerSecond = 1000;
constexpr size_t kLongestParameter = 6000;

int64_t milliseconds_of(double seconds) {
  return std::isfinite(seconds) ? std::llround(std::clamp(seconds, 0.0, 1e11) * kMillisecondsPerSecond) : 0;
}

// Two hashes, which give the 32 digits of an MLflow run id.
std::string run_identity(const RunHistory& run) {
  const std::string place = run.folder.string();
  return hex_digits(fnv1a64(place)) + hex_digits(fnv1a64("run " + place));
}

std::string experiment_identity(const std::string& name) {
  constexpr uint64_t kDigits = 900'000'000'000'000'000, kLeast = 100'000'000'000'000'000;
  return cat(fnv1a64(name) % kDigits + kLeast);
}

// Quotes a YAML text.
std::string yaml_text(std::string_view words) {
  std::string out = "\"";
  for (const char c : words) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

// FINISHED 3, FAILED 4, KILLED 5, RUNNING 1 (mlflow.protos.service.RunStatus).
int status_number(const std::string& state) {
  if (state == "failed") return 4;
  if (state == "interrupted" || state == "killed") return 5;
  return state == "running" || state == "starting" ? 1 : 3;
}

double last_time(const RunHistory& run) {
  double last = run.scalars.first_wall_time;
  for (const auto& [tag, points] : run.scalars.by_tag) {
    for (const ScalarPoint& point : points) last = std::max(last, point.wall_time);
  }
  return last;
}

void write_into(const fs::path& file, std::string_view text) {
  make_folders(file.parent_path());
  write_file_atomically(file, text);
}

std::string metric_lines(const std::vector<ScalarPoint>& points) {
  std::string lines;
  for (const ScalarPoint& point : points) {
    std::array<char, 32> value{};
    const auto end = std::to_chars(value.data(), value.data() + value.size(), static_cast<float>(point.value));
    lines += cat(milliseconds_of(point.wall_time), " ",
                 std::string_view(value.data(), static_cast<size_t>(end.ptr - value.data())), " ", point.step, "\n");
  }
  return lines;
}

// Maps tags to file names that are no other metric's folder ("Loss" beside "Loss/train") and no other's file ("a<b", "a>b").
std::map<std::string, std::string> metric_files(const RunHistory& run) {
  std::vector<std::string> names;
  for (const auto& [tag, points] : run.scalars.by_tag) names.push_back(mlflow_name(tag));
  std::map<std::string, std::string> files;
  std::set<std::string> taken;
  const auto is_free = [&](const std::string& file) {
    return !taken.contains(file) && std::ranges::none_of(names, [&](const auto& name) { return name.starts_with(file + "/"); });
  };
  for (const auto& [tag, points] : run.scalars.by_tag) {
    const std::string name = mlflow_name(tag);
    std::string file = name;
    if (!is_free(file)) file = name + "_";
    for (int i = 2; !is_free(file); ++i) file = cat(name, "_", i);
    taken.insert(file);
    files[tag] = file;
  }
  return files;
}

void write_run(const fs::path& experiment, const std::string& experiment_id, const RunHistory& run) {
  const std::string identity = run_identity(run);
  const fs::path folder = experiment / identity;
  const int status = status_number(run.facts.state);
  const auto files = metric_files(run);
  for (const auto& [tag, points] : run.scalars.by_tag) {
    if (!points.empty()) write_into(folder / "metrics" / files.at(tag), metric_lines(points));
  }
  for (const auto& [key, value] : run.facts.configuration)
    write_into(folder / "params" / mlflow_name(key), value.substr(0, kLongestParameter));
  write_into(folder / "tags" / "mlflow.runName", run.label);
  write_into(folder / "tags" / "mlflow.source.name", "welkin");
  write_into(folder / "tags" / "welkin.folder", run.folder.string());
  make_folders(folder / "artifacts");
  // Written last: a run exists once it has a meta.yaml.
  write_into(folder / "meta.yaml",
             cat("artifact_uri: ", yaml_text("file://" + (folder / "artifacts").string()), "\nend_time: ",
                 status == 1 ? "null" : cat(milliseconds_of(last_time(run))), "\nentry_point_name: ''\nexperiment_id: '",
                 experiment_id, "'\nlifecycle_stage: active\nrun_id: ", identity, "\nrun_name: ", yaml_text(run.label),
                 "\nrun_uuid: ", identity, "\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: ",
                 milliseconds_of(run.scalars.first_wall_time), "\nstatus: ", status, "\ntags: []\nuser_id: welkin\n"));
}

}  // namespace

std::string mlflow_name(std::string_view tag) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-. :/";
  std::string name(tag.substr(0, 200));
  for (char& letter : name) {
    if (kAllowed.find(letter) == kAllowed.npos) letter = '_';
  }
  // No part of the name may be empty, or lead out of its folder.
  std::string safe;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string part = name.substr(at, end - at);
    const bool is_bad = part.empty() || part.find_first_not_of('.') == part.npos;
    safe += cat(safe.empty() ? "" : "/", is_bad ? "_" : part);
    at = end + 1;
  }
  return safe;
}

void write_mlflow_store(const fs::path& folder, const std::string& experiment, const std::vector<RunHistory>& runs) {
  const fs::path root = fs::absolute(folder).lexically_normal();
  const std::string identity = experiment_identity(experiment);
  const fs::path place = root / identity;
  double first = 0;
  for (const RunHistory& run : runs)
    first = first == 0 ? run.scalars.first_wall_time : std::min(first, run.scalars.first_wall_time);
  const int64_t made = milliseconds_of(first);
  write_into(place / "meta.yaml",
             cat("artifact_location: ", yaml_text("file://" + place.string()), "\ncreation_time: ", made, "\nexperiment_id: '",
                 identity, "'\nlast_update_time: ", made, "\nlifecycle_stage: active\nname: ", yaml_text(experiment), "\n"));
  for (const RunHistory& run : runs) write_run(place, identity, run);
}

}  // namespace welkin::observe
