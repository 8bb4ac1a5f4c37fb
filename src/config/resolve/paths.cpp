// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/paths.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/text.h"

namespace welkin::config {
namespace {

struct NeededPath {
  std::string_view key;
  const std::string* path;
};

std::vector<NeededPath> box_paths(const DataConfig& data) {
  if (data.data_loader_config == Loader::Synthetic) return {};
  if (data.data_loader_config == Loader::DaliLowMem) {
    return {{"train_path_npy_data", &data.train_path_npy_data},
            {"train_path_npy_label", &data.train_path_npy_label},
            {"val_path_npy_data", &data.val_path_npy_data},
            {"val_path_npy_label", &data.val_path_npy_label}};
  }
  return {{"train_path", &data.train_path}, {"val_path", &data.val_path}};
}

std::vector<NeededPath> field_paths(const DataConfig& data) {
  if (data.data_loader_config == Loader::Synthetic) return {};
  std::vector<NeededPath> statistics{{"global_means_path", &data.global_means_path},
                                     {"global_stds_path", &data.global_stds_path}};
  if (!data.datasets.empty()) return statistics;  // opening says which of the folders is not there
  const bool is_one_archive = data.valid_data_path.empty() && !data.valid_times.empty();
  return {{"train_data_path", &data.train_data_path},
          {"valid_data_path", is_one_archive ? &data.train_data_path : &data.valid_data_path},
          statistics[0],
          statistics[1]};
}

std::vector<NeededPath> needed_paths(const DataConfig& data) {
  if (data.dataset == "nbody") return box_paths(data);
  if (data.dataset == "era5") return field_paths(data);
  return {};  // a plug-in's data set looks after its own
}

}  // namespace

bool path_exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::vector<MissingPath> missing_paths(const RunConfig& config) {
  std::vector<MissingPath> missing;
  for (const NeededPath& needed : needed_paths(config.data)) {
    if (needed.path->empty() || !path_exists(*needed.path)) missing.push_back({std::string(needed.key), *needed.path});
  }
  return missing;
}

std::string describe_missing(const RunConfig& config) {
  const auto missing = missing_paths(config);
  if (missing.empty()) return {};
  std::vector<std::string> rows;
  for (const MissingPath& one : missing) rows.push_back(cat(one.key, "=", one.path.empty() ? "(not given)" : one.path));
  return cat("paths of the training data do not exist: ", join(rows, ", "));
}

namespace {

// The flags that select an archive's data for its statistics.
std::string archive_flags(const DataConfig& data) {
  std::string flags;
  if (!data.variables.empty()) flags += cat(" --variables ", join(data.variables, ","));
  if (!data.levels.empty()) flags += cat(" --levels ", join(data.levels, ","));
  if (!data.train_times.empty()) flags += cat(" --times ", join(data.train_times, ","));
  return flags;
}

// True if only statistics are missing, and the fields are there.
bool lacks_statistics_alone(const RunConfig& config) {
  const auto missing = missing_paths(config);
  return !missing.empty() && std::ranges::all_of(missing, [](const MissingPath& one) { return one.key.starts_with("global_"); });
}

}  // namespace

void check_paths(const RunConfig& config) {
  const std::string missing = describe_missing(config);
  if (missing.empty()) return;
  if (lacks_statistics_alone(config)) {
    const std::string folder = std::filesystem::path(config.data.global_means_path).parent_path().string();
    throw DataError("config", missing,
                    cat("Compute them with welkin data stats ", config.data.train_data_path, archive_flags(config.data),
                        " --out ", folder.empty() ? "DIR" : folder, ", and give global_means_path and global_stds_path"));
  }
  throw DataError("config", missing,
                  cat("Give --data_root DIR for what /data stands for (now ", config.data.data_root,
                      "), or make data with welkin data simulate or welkin data ingest"));
}

std::string run_folder(const RunConfig& config, int64_t world_size) {
  const bool is_model_parallel = config.output.folder_rule == FolderRule::Mp;
  const int64_t size = is_model_parallel ? config.parallel.model_size() : world_size;
  const std::filesystem::path root = config.output.expdir;
  return (root / config.config / cat(size, is_model_parallel ? "MP" : "GPU") / config.output.run_num).string();
}

}  // namespace welkin::config
