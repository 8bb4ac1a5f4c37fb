// SPDX-License-Identifier: Apache-2.0
// The folder of a run, laid out as by the tutorials: out.log and logs/ (TensorBoard); besides, config.yaml and checkpoints/
// (ours).
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "config/schema/run_config.h"

namespace welkin::train {

class RunFolder {
 public:
  static constexpr const char* kDataFile =
      "data.json";  // description of the data that a run trains on (interchange/sample_spec_json.h)

  // The folder of a run of this configuration (config/resolve/paths.h). Touches nothing.
  RunFolder(const config::RunConfig& config, int64_t world_size);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path log_file() const { return path_ / "out.log"; }
  std::filesystem::path event_folder() const { return path_ / "logs"; }
  std::filesystem::path csv_file() const { return path_ / "metrics.csv"; }
  std::filesystem::path checkpoint_folder() const { return path_ / "checkpoints"; }
  std::filesystem::path config_file() const { return path_ / "config.yaml"; }
  std::filesystem::path data_file() const { return path_ / kDataFile; }

  // A folder that holds another configuration is a ConfigError naming the first differences, unless `config` resumes: then
  // `note` gets them. Rules of sampling and --compat may not differ even then. Touches nothing.
  void check(const config::RunConfig& config, int64_t world_size, const std::function<void(const std::string&)>& note) const;

  // Makes the folders. Throws DataError when the file system refuses.
  void make() const;

  // Writes config.yaml: from here on the folder belongs to this configuration. Called when the run is about to step, so that a
  // run which cannot start does not take the folder from the corrected one.
  void claim(const config::RunConfig& config) const;

 private:
  void check_rules(const config::RunConfig& config) const;
  // The differences to the configuration that the folder holds; empty when it holds none or the same.
  std::string difference(const config::RunConfig& config, int64_t world_size) const;

  std::filesystem::path path_;
};

}  // namespace welkin::train
