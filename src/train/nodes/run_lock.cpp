// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/run_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/printable.h"
#include "core/process/host.h"
#include "core/text.h"

namespace welkin::train {
namespace {

// The text of the process that wrote the file last.
std::string holder(const FileDescriptor& file) {
  std::array<char, 200> text{};
  const ssize_t count = pread(file.get(), text.data(), text.size(), 0);
  return count <= 0 ? "unknown" : printable({text.data(), static_cast<size_t>(count)});
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& folder) {
  const std::string by = take(folder / "lock");
  if (by.empty()) return;
  throw ConfigError("train", cat("another run works in the run folder: path=", folder.string(), ", by=", by),
                    "Choose another --run_num, or wait until that run has ended");
}

std::optional<RunLock> RunLock::of_place(const std::filesystem::path& folder, std::string& by) {
  make_folders(folder.parent_path());
  RunLock lock;
  by = lock.take(folder.parent_path() / cat(".", folder.filename().string(), ".lock"));
  return by.empty() ? std::optional(std::move(lock)) : std::nullopt;
}

std::string RunLock::take(const std::filesystem::path& path) {
  file_ = open_file(path, O_RDWR | O_CREAT);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(file_.get(), F_OFD_SETLK, &whole) != 0) return errno == EAGAIN || errno == EACCES ? holder(file_) : std::string();
  // Only for people: the text in the file is no lock.
  const std::string who = cat("process ", getpid(), " on ", host_name());
  if (ftruncate(file_.get(), 0) == 0) write_fully(file_, path, who);
  return {};
}

}  // namespace welkin::train
