// SPDX-License-Identifier: Apache-2.0
// A model package: a folder that holds all that a trained model needs to run anywhere. weights.safetensors and config.yaml; the
// files of statistics that the configuration names; package.json: channels, units, grid, licence, where it comes from, hashes.
// Every verb takes it in the place of a run folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"
#include "train/interchange/state.h"

namespace welkin::train::interchange {

struct PackageFacts {
  std::string licence;  // of the weights, as SPDX says it; empty: not said
  std::string note;     // one line for people
  std::string maker;    // "welkin 0.1.0"
};

// `state` holds the weights, `spec` is that of the run's data. The folder appears whole; ConfigError where there is one already.
void write_package(const State& state, const data::SampleSpec& spec, const config::RunConfig& config, const PackageFacts& facts,
                   const std::filesystem::path& out);

bool is_package(const std::filesystem::path& folder);

// Weights, configuration and step of a package, verified; open_state() gives it for its folder.
State package_state(const std::filesystem::path& folder);

// DataError for a damaged package.json.
class ModelPackage {
 public:
  explicit ModelPackage(std::filesystem::path folder);

  // Reads every file. CheckpointError for one that is not as it was written.
  void verify() const;

  const data::SampleSpec& spec() const { return spec_; }
  int64_t step() const { return step_; }
  // Keys of the configuration, and the package's files that they are to name.
  const std::vector<std::pair<std::string, std::filesystem::path>>& files() const { return files_; }
  // A data set of this specification, for a model that is called with fields of others: to read it is a DataError.
  std::unique_ptr<data::Dataset> data() const;
  // ConfigError naming what differs, where data are not those that the model takes: channels, grid, means, deviations.
  void check_fits(const data::SampleSpec& spec) const;

 private:
  std::filesystem::path folder_;
  data::SampleSpec spec_;
  int64_t step_ = 0;
  std::vector<std::pair<std::string, std::filesystem::path>> files_;
  std::vector<std::pair<std::filesystem::path, std::string>> hashes_;  // XXH3, as hex_digits() has it
};

}  // namespace welkin::train::interchange
