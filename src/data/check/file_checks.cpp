// SPDX-License-Identifier: Apache-2.0
#include "data/check/file_checks.h"

#include <sys/stat.h>

#include <utility>

namespace welkin::data {

void FileChecks::use(CheckHelper helper) {
  const std::scoped_lock lock(mutex_);
  helper_.reset();
  deaths_.clear();
  on_absent_ = nullptr;
  if (can_run(helper)) {
    helper_ = std::move(helper);
  } else {
    on_absent_ = std::move(helper.on_absent);
  }
}

std::optional<FileChecks::Identity> FileChecks::identity_of(const std::filesystem::path& file) {
  struct stat facts {};
  if (stat(file.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  return Identity{.device = static_cast<uint64_t>(facts.st_dev),
                  .inode = static_cast<uint64_t>(facts.st_ino),
                  .bytes = static_cast<uint64_t>(facts.st_size),
                  .changed_s = facts.st_mtim.tv_sec,
                  .changed_ns = facts.st_mtim.tv_nsec};
}

FileChecks::Unknown FileChecks::unknown_of(std::span<const std::filesystem::path> files) {
  Unknown unknown;
  for (const auto& file : files) {
    const auto identity = identity_of(file);
    if (!identity) continue;
    const std::scoped_lock lock(mutex_);
    if (deaths_.contains(*identity)) continue;
    unknown.identities.push_back(*identity);
    unknown.paths.push_back(std::filesystem::absolute(file).string());  // a name may begin with a dash
  }
  return unknown;
}

void FileChecks::tell_of_absence() {
  std::function<void()> tell;
  {
    const std::scoped_lock lock(mutex_);
    tell = std::exchange(on_absent_, nullptr);
  }
  if (tell) tell();
}

void FileChecks::check(std::span<const std::filesystem::path> files) {
  const Unknown unknown = unknown_of(files);
  if (unknown.paths.empty()) return;
  std::optional<CheckHelper> helper;
  {
    const std::scoped_lock lock(mutex_);
    helper = helper_;
  }
  if (!helper) return tell_of_absence();
  const std::vector<std::string> deaths = check_in_children(*helper, unknown.paths);
  const std::scoped_lock lock(mutex_);
  for (size_t i = 0; i < deaths.size(); ++i) deaths_.insert_or_assign(unknown.identities[i], deaths[i]);
}

std::string FileChecks::death(const std::filesystem::path& file) {
  check({&file, 1});
  const auto identity = identity_of(file);
  const std::scoped_lock lock(mutex_);
  const auto found = identity ? deaths_.find(*identity) : deaths_.end();
  return found == deaths_.end() ? "" : found->second;
}

void FileChecks::trust(const std::filesystem::path& file) {
  const auto identity = identity_of(file);
  const std::scoped_lock lock(mutex_);
  if (identity) deaths_.insert_or_assign(*identity, "");
}

}  // namespace welkin::data
