// SPDX-License-Identifier: Apache-2.0
#include "data/check/file_checks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

namespace welkin::data {

void FileChecks::use(CheckHelper helper) {
  const std::scoped_lock lock(mutex_);
  helper_.reset();
  deaths_.clear();
  if (::access(helper.program.c_str(), X_OK) == 0) helper_ = std::move(helper);
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

void FileChecks::check(std::span<const std::filesystem::path> files) {
  std::vector<Identity> identities;
  std::vector<std::string> paths;
  std::optional<CheckHelper> helper;
  {
    const std::scoped_lock lock(mutex_);
    helper = helper_;
  }
  if (!helper) return;
  for (const auto& file : files) {
    const auto identity = identity_of(file);
    if (!identity) continue;
    const std::scoped_lock lock(mutex_);
    if (deaths_.contains(*identity)) continue;
    identities.push_back(*identity);
    paths.push_back(std::filesystem::absolute(file).string());  // a name may begin with a dash
  }
  if (paths.empty()) return;
  const std::vector<std::string> deaths = check_in_children(*helper, paths);
  const std::scoped_lock lock(mutex_);
  for (size_t i = 0; i < deaths.size(); ++i) deaths_.insert_or_assign(identities[i], deaths[i]);
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
  if (identity && helper_) deaths_.insert_or_assign(*identity, "");
}

}  // namespace welkin::data
