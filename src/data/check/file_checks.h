// SPDX-License-Identifier: Apache-2.0
// Results of the checks of files in child processes: one for each file as it is now (device, inode, size, time of the last
// change). Thread-safe. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/check/check_child.h"

namespace welkin::data {

class FileChecks {
 public:
  // Without a helper, or without its program, every file counts as sound. on_absent is called once for an absent program,
  // before the first file that another process wrote.
  void use(CheckHelper helper);

  // Checks the files that are not known yet, in parallel. Files that are not there are passed over.
  void check(std::span<const std::filesystem::path> files);
  // The failure of the child that looked at the file (check_child.h); empty: none.
  std::string death(const std::filesystem::path& file);
  // This process wrote it and knows what it holds.
  void trust(const std::filesystem::path& file);

 private:
  struct Identity {
    uint64_t device = 0, inode = 0, bytes = 0;
    int64_t changed_s = 0, changed_ns = 0;
    auto operator<=>(const Identity&) const = default;  // NOLINT(modernize-use-nullptr): there is none
  };
  static std::optional<Identity> identity_of(const std::filesystem::path& file);

  // Those of these files that are not known.
  struct Unknown {
    std::vector<Identity> identities;
    std::vector<std::string> paths;
  };
  Unknown unknown_of(std::span<const std::filesystem::path> files);
  void tell_of_absence();

  std::mutex mutex_;  // of what follows
  std::optional<CheckHelper> helper_;
  std::function<void()> on_absent_;
  std::map<Identity, std::string> deaths_;
};

}  // namespace welkin::data
