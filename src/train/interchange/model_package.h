// SPDX-License-Identifier: Apache-2.0
// A model package: a folder with all that a trained model needs to run anywhere. It holds weights.safetensors and config.yaml;
// the files of statistics that the configuration names; package.json with channels, units, grid, licence, provenance and
// hashes. Every verb takes it in the place of a run folder.
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
  std::string licence;  // of the weights, as an SPDX identifier; empty: not stated
  std::string note;     // one line for people
  std::string maker;    // "welkin 0.1.0"
};

// `state` holds the weights, `spec` is the specification of the run's data. The folder appears whole; ConfigError if it exists.
void write_package(const State& state, const data::SampleSpec& spec, const config::RunConfig& config, const PackageFacts& facts,
                   const std::filesystem::path& out);

bool is_package(const std::filesystem::path& folder);

// Weights, configuration and step of a package, verified. open_state() returns it for a package's folder.
State package_state(const std::filesystem::path& folder);

// DataError for a damaged package.json.
class ModelPackage {
 public:
  explicit ModelPackage(std::filesystem::path folder);

  // Reads every file. CheckpointError for a file that differs from its hash.
  void verify() const;

  const data::SampleSpec& spec() const { return spec_; }
  int64_t step() const { return step_; }
  // Keys of the configuration, and the package's files to which they have to be set.
  const std::vector<std::pair<std::string, std::filesystem::path>>& files() const { return files_; }
  // A data set of this specification without samples, for a model that is called with other fields: reading is a DataError.
  std::unique_ptr<data::Dataset> data() const;
  // ConfigError naming the first difference, if the data do not fit the model: channels, grid, means, deviations.
  void check_fits(const data::SampleSpec& spec) const;

 private:
  std::filesystem::path folder_;
  data::SampleSpec spec_;
  int64_t step_ = 0;
  std::vector<std::pair<std::string, std::filesystem::path>> files_;
  std::vector<std::pair<std::filesystem::path, std::string>> hashes_;  // XXH3, written by hex_digits()
};

}  // namespace welkin::train::interchange
