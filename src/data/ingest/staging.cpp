// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/staging.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "core/error.h"
#include "core/file.h"
#include "core/process/host.h"
#include "core/text.h"

namespace welkin::data::ingest {
namespace {

namespace fs = std::filesystem;

// <target>.partial-<host>-<pid>: a process number says nothing on another host that shares the disk.
std::string partial_prefix(const fs::path& target) { return cat(target.filename().string(), ".partial-"); }

bool is_dead(std::string_view owner) {
  const std::string host = cat(host_name(), "-");
  if (!owner.starts_with(host)) return false;
  owner.remove_prefix(host.size());
  pid_t pid = 0;
  const auto [end, problem] = std::from_chars(owner.data(), owner.data() + owner.size(), pid);
  if (problem != std::errc() || end != owner.data() + owner.size() || pid <= 0) return false;
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

// Takes the folder's lock without waiting. A file system without locks counts as free: the process number decides then.
bool is_free(const FileDescriptor& folder) { return ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

}  // namespace

StagingFolder::StagingFolder(std::filesystem::path target) : target_(std::filesystem::absolute(target).lexically_normal()) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // "out/" names the same folder as "out"
  if (std::filesystem::exists(std::filesystem::symlink_status(target_))) {
    throw DataError("ingest", cat("the output exists already: out=", target_.string()), "Remove it or choose another --out");
  }
  clear_leftovers();
  path_ = target_.parent_path() / cat(partial_prefix(target_), host_name(), "-", getpid());
  make_folders(path_);
  lock_ = open_file(path_, O_RDONLY | O_DIRECTORY);
  is_free(lock_);
}

void StagingFolder::clear_leftovers() {
  const std::string prefix = partial_prefix(target_);
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(target_.parent_path(), absent)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !entry.is_directory() || entry.is_symlink()) continue;
    std::error_code problem;
    if (is_dead(std::string_view(name).substr(prefix.size())) && is_free(open_file(entry.path(), O_RDONLY | O_DIRECTORY))) {
      fs::remove_all(entry.path(), problem);
      if (!problem) notes_.push_back(cat("removed what a killed run had left: path=", entry.path().string()));
    } else {
      notes_.push_back(cat("another run writes here or was killed, perhaps on another host: path=", entry.path().string(),
                           "; remove it if no run is at work"));
    }
  }
}

StagingFolder::~StagingFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

void StagingFolder::publish() {
  publish_folder(path_, target_);
  path_.clear();
}

}  // namespace welkin::data::ingest
