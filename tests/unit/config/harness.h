// SPDX-License-Identifier: Apache-2.0
// What the configuration's tests share: resolving a text with arguments, and the text of the error that something throws.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "config/draft/known_names.h"
#include "config/flags/command_line.h"
#include "config/resolve/resolve.h"
#include "core/error.h"

namespace welkin::config::test {

inline CommandLine command_line(const std::vector<std::string>& arguments, const std::vector<ExtraFlag>& extra = {}) {
  std::vector<const char*> argv = {"welkin train"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return parse(static_cast<int>(argv.size()), argv.data(), extra);
}

// A file "run.yaml" in a folder of its own, which is the current folder while this lives: messages name it by its short name.
class YamlFile {
 public:
  explicit YamlFile(const std::string& text) : before_(std::filesystem::current_path()) {
    std::string pattern = (std::filesystem::temp_directory_path() / "welkin-config-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
    std::ofstream(folder_ / "run.yaml") << text;
    std::filesystem::current_path(folder_);
  }
  ~YamlFile() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }
  YamlFile(const YamlFile&) = delete;
  YamlFile& operator=(const YamlFile&) = delete;

 private:
  std::filesystem::path before_, folder_;
};

inline Resolved resolve_text(const std::string& text, std::vector<std::string> arguments = {}, int64_t world_size = 1,
                             const KnownNames& known = {}) {
  const YamlFile file(text);
  arguments.insert(arguments.begin(), "--yaml_config=run.yaml");
  return resolve(command_line(arguments), world_size, known);
}

// The message of the ConfigError that `body` throws; the test fails when it throws none.
inline std::string config_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no ConfigError was thrown";
  return {};
}

inline std::string resolve_error(const std::string& text, const std::vector<std::string>& arguments = {}, int64_t world_size = 1,
                                 const KnownNames& known = {}) {
  return config_error([&] { resolve_text(text, arguments, world_size, known); });
}

inline std::filesystem::path source_folder() {
  const char* folder = std::getenv("WELKIN_SOURCE_DIR");
  return folder == nullptr ? std::filesystem::current_path() : std::filesystem::path(folder);
}

inline Resolved resolve_shipped(const std::string& file, std::vector<std::string> arguments = {}, int64_t world_size = 1) {
  arguments.insert(arguments.begin(), "--yaml_config=" + (source_folder() / "config" / file).string());
  return resolve(command_line(arguments), world_size);
}

// The smallest files of ours.
inline constexpr char kVitFile[] = "base:\n  model: vit\n  global_batch_size: 4\n  num_iters: 10\n";
inline constexpr char kUnetFile[] = "base:\n  model: unet3d\n  global_batch_size: 4\n  num_epochs: 2\n";

}  // namespace welkin::config::test
