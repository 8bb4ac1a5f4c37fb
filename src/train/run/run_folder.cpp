// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_folder.h"

#include "config/print/print.h"
#include "config/resolve/paths.h"
#include "config/resolve/resolve.h"
#include "config/resolve/same_run.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::train {

namespace fs = std::filesystem;

RunFolder::RunFolder(const config::RunConfig& config, int64_t world_size) : path_(config::run_folder(config, world_size)) {}

std::string RunFolder::difference(const config::RunConfig& config, int64_t world_size) const {
  if (!fs::exists(config_file())) return {};
  const std::string text = read_file(config_file(), 1 << 24);
  std::string difference;
  try {
    const config::RunConfig held = config::from_yaml(text, config_file().string(), world_size);
    const bool is_same = config::same_run(config::with_absolute_paths(held), config::with_absolute_paths(config), &difference);
    return is_same ? std::string() : difference;
  } catch (const ConfigError& error) {
    return error.what();
  }
}

void RunFolder::check(const config::RunConfig& config, int64_t world_size,
                      const std::function<void(const std::string&)>& note) const {
  if (config.loop.resume) check_rules(config);
  if (const std::string change = difference(config, world_size); !change.empty()) {
    if (!config.loop.resume) {
      throw ConfigError("train", cat("the run folder holds another configuration: path=", path_.string(), ", ", change),
                        "Choose another --run_num, remove the folder, or continue that run with --resume");
    }
    note(cat("The resumed run had another configuration: ", change));
  }
}

void RunFolder::check_rules(const config::RunConfig& config) const {
  if (!fs::exists(config_file())) return;
  std::string change;
  try {
    const std::string text = read_file(config_file(), 1 << 24);
    change = config::pinned_difference(config::saved_values(text, config_file().string()), config);
  } catch (const ConfigError&) {
    return;  // difference() reports the fault of the file; the checkpoint has the rules too
  }
  if (change.empty()) return;
  throw ConfigError("train", cat("the run to resume has other rules: path=", path_.string(), ", ", change),
                    "Resume with the rules of the run, or start a new one with another --run_num");
}

void RunFolder::make() const {
  try {
    make_folders(event_folder());
  } catch (const DataError& error) {
    std::string why = error.what();
    if (why.ends_with('.')) why.pop_back();
    throw DataError("train", cat("the run folder cannot be made: path=", path_.string(), ", because ", why),
                    "Name a folder for all runs with --log_root");
  }
}

void RunFolder::claim(const config::RunConfig& config) const {
  write_file_atomically(config_file(), config::yaml(config::with_absolute_paths(config)));
}

}  // namespace welkin::train
