// SPDX-License-Identifier: Apache-2.0
#include "train/interchange/model_package.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/print/print.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"
#include "data/datasets/channel_statistics.h"
#include "data/sample/likeness.h"
#include "train/interchange/export_state.h"
#include "train/interchange/sample_spec_json.h"
#include "train/interchange/stated_data.h"

namespace welkin::train::interchange {
namespace {

namespace fs = std::filesystem;
using PackageJson = nlohmann::ordered_json;

constexpr const char* kPackageFile = "package.json";
constexpr const char* kWeightsFile = "weights.safetensors";
constexpr const char* kConfigFile = "config.yaml";
constexpr const char* kFormat = "welkin model package";
constexpr int kVersionOfFormat = 1;
constexpr uint64_t kMostFactsBytes = uint64_t{64} << 20;

// The only keys that a package may set.
constexpr std::array<std::string_view, 3> kStatisticsKeys = {"data.global_means_path", "data.global_stds_path",
                                                             "data.time_means_path"};

struct StatisticsFile {
  std::string_view key;
  std::string path;
};

std::vector<StatisticsFile> statistics_of(const config::RunConfig& config) {
  std::vector<StatisticsFile> files = {{kStatisticsKeys[0], config.data.global_means_path},
                                       {kStatisticsKeys[1], config.data.global_stds_path},
                                       {kStatisticsKeys[2], config.data.time_means_path}};
  std::error_code ignored;
  std::erase_if(files, [&](const StatisticsFile& file) { return file.path.empty() || !fs::is_regular_file(file.path, ignored); });
  return files;
}

// The files of lowest and highest values beside the means, which normalization minmax reads.
std::vector<fs::path> ranges_of(const config::RunConfig& config) {
  const auto is_minmax = [](const std::string& entry) { return entry.ends_with("minmax"); };
  if (std::ranges::none_of(config.data.normalization, is_minmax)) return {};
  const fs::path folder = fs::path(config.data.global_means_path).parent_path();
  return {folder / data::kMinsFile, folder / data::kMaxsFile};
}

std::string hash_of(const fs::path& path) { return hex_digits(xxh3_64_of_file(path)); }

// The name of a key's file in a package: "global_means.npy".
std::string name_in_package(const StatisticsFile& file) {
  std::string name(file.key);
  name = name.substr(name.find('.') + 1);
  return name.substr(0, name.rfind("_path")) + fs::path(file.path).extension().string();
}

PackageJson provenance_of(const State& state) {
  PackageJson json = {{"checkpoint", state.path.filename().string()}};
  if (state.iteration) json["step"] = *state.iteration;
  if (state.epoch) json["epoch"] = *state.epoch;
  for (const auto& [name, text] : state.facts) {
    if (name.find("xxh3") == std::string::npos && !name.ends_with(".safetensors")) json[name] = text;
  }
  return json;
}

void write_parts(const State& state, const data::SampleSpec& spec, const config::RunConfig& config, const PackageFacts& facts,
                 const fs::path& folder) {
  PackageJson json = {{"format", kFormat},
                      {"version", kVersionOfFormat},
                      {"made_by", facts.maker},
                      {"licence", facts.licence},
                      {"note", facts.note},
                      {"model", config.model.model},
                      {"step", state.iteration.value_or(0)},
                      {"provenance", provenance_of(state)}};
  export_state(state, {.format = FileFormat::Safetensors, .dtype = {}}, folder / kWeightsFile);
  write_file_atomically(folder / kConfigFile, config::yaml(config));
  json["files"] = PackageJson::object();
  for (const StatisticsFile& file : statistics_of(config)) {
    const std::string name = name_in_package(file);
    fs::copy_file(file.path, folder / name);
    json["files"][std::string(file.key)] = name;
  }
  for (const fs::path& file : ranges_of(config)) fs::copy_file(file, folder / file.filename());
  PackageJson hashes = PackageJson::object();
  for (const auto& entry : fs::directory_iterator(folder)) hashes[entry.path().filename().string()] = hash_of(entry.path());
  json["xxh3"] = hashes;
  json["spec"] = PackageJson::parse(sample_spec_json(spec));
  write_file_atomically(folder / kPackageFile, json.dump(1, ' ', false, PackageJson::error_handler_t::replace) + "\n");
}

// True if a name in package.json may stand: a file of the folder itself.
bool is_plain_name(const std::string& name) { return !name.empty() && name.find('/') == std::string::npos && name != ".."; }

[[noreturn]] void refuse_package(const fs::path& folder, const std::string& reason) {
  throw DataError("package", cat("package.json is damaged: path=", folder.string(), ", reason=", reason),
                  "Fetch the package again");
}

void verify_file(const fs::path& path, const std::string& wanted) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    throw CheckpointError("package", cat("a file is missing: path=", path.string()), "Fetch the package again");
  }
  const std::string found = hash_of(path);
  if (found == wanted) return;
  throw CheckpointError("package",
                        cat("a file is not as it was written: path=", path.string(), ", xxh3=", found, ", wanted=", wanted),
                        "Fetch the package again");
}

// Values are copied by functions that recurse once per level.
PackageJson parsed_facts(const fs::path& folder) {
  constexpr int kDeepest = 8;
  const auto limit = [&](int depth, PackageJson::parse_event_t /*event*/, const PackageJson& /*value*/) {
    if (depth > kDeepest) refuse_package(folder, "nested too deeply");
    return true;
  };
  return PackageJson::parse(read_file(folder / kPackageFile, kMostFactsBytes), limit);
}

// Sets `differs`, unless it is set, to the first difference of two lists: "input channels: of 3 instead of 2", or the first
// place with both values.
template <typename T>
void compare_lists(std::string& differs, const char* name, const std::vector<T>& mine, const std::vector<T>& theirs) {
  if (!differs.empty() || mine == theirs) return;
  if (mine.size() != theirs.size()) {
    differs = cat(name, ": of ", theirs.size(), " instead of ", mine.size());
    return;
  }
  const auto place = std::mismatch(mine.begin(), mine.end(), theirs.begin());
  differs = cat(name, "[", std::distance(mine.begin(), place.first), "]: ", *place.second, " instead of ", *place.first);
}

}  // namespace

void write_package(const State& state, const data::SampleSpec& spec, const config::RunConfig& config, const PackageFacts& facts,
                   const fs::path& out) {
  std::error_code ignored;
  if (fs::exists(out, ignored)) {
    throw ConfigError("package", cat("the path exists already: path=", out.string()), "Give another name, or take it away first");
  }
  fs::path folder = out;
  folder += ".partial";
  fs::remove_all(folder, ignored);
  make_folders(folder);
  try {
    write_parts(state, spec, config, facts, folder);
    publish_folder(folder, out);
  } catch (...) {
    fs::remove_all(folder, ignored);
    throw;
  }
}

bool is_package(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / kPackageFile, ignored) && fs::is_regular_file(folder / kWeightsFile, ignored);
}

State package_state(const fs::path& folder) {
  const ModelPackage package(folder);
  package.verify();
  State state = safetensors_state(folder / kWeightsFile);
  state.path = folder;
  state.format = "model package";
  state.config = read_file(folder / kConfigFile, kMostFactsBytes);
  state.iteration = package.step();
  return state;
}

ModelPackage::ModelPackage(fs::path folder) : folder_(std::move(folder)) {
  try {
    const PackageJson json = parsed_facts(folder_);
    if (json.at("format") != kFormat) refuse_package(folder_, "format");
    if (json.at("version") != kVersionOfFormat) refuse_package(folder_, "written by a newer version");
    if (!json.at("step").is_number_integer()) refuse_package(folder_, "step");
    step_ = json.at("step").get<int64_t>();
    for (const auto& [key, name] : json.at("files").items()) {
      if (std::ranges::find(kStatisticsKeys, key) == kStatisticsKeys.end()) refuse_package(folder_, "a key of a file");
      if (!is_plain_name(name.get<std::string>())) refuse_package(folder_, "a name of a file");
      files_.emplace_back(key, fs::absolute(folder_) / name.get<std::string>());
    }
    for (const auto& [name, hash] : json.at("xxh3").items()) {
      if (!is_plain_name(name)) refuse_package(folder_, "a name of a file");
      hashes_.emplace_back(folder_ / name, hash.get<std::string>());
    }
    spec_ = sample_spec_from_json(json.at("spec").dump(), {.path = (folder_ / kPackageFile).string()});
  } catch (const PackageJson::exception& error) {
    refuse_package(folder_, error.what());
  }
}

void ModelPackage::verify() const {
  for (const auto& [path, hash] : hashes_) verify_file(path, hash);
}

std::unique_ptr<data::Dataset> ModelPackage::data() const {
  return std::make_unique<StatedData>(spec_, cat("a package holds no data: path=", folder_.string()),
                                      "Say where they are: --data_root, or the keys of their paths");
}

void ModelPackage::check_fits(const data::SampleSpec& spec) const {
  std::string differs = data::difference_of_samples(spec_, spec);
  compare_lists(differs, "input means", spec_.input_mean, spec.input_mean);
  compare_lists(differs, "input deviations", spec_.input_std, spec.input_std);
  compare_lists(differs, "target means", spec_.target_mean, spec.target_mean);
  compare_lists(differs, "target deviations", spec_.target_std, spec.target_std);
  if (differs.empty()) return;
  throw ConfigError("package", cat("the data are not those that this model takes: path=", folder_.string(), ", ", differs),
                    "Give data of its channels and grid (package.json says them), without other statistics");
}

}  // namespace welkin::train::interchange
