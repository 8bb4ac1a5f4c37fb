// SPDX-License-Identifier: Apache-2.0
#include "core/file_descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "core/fault/write_watch.h"
#include "core/text.h"

namespace welkin {
namespace {

std::string_view remedy_for(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "Free space on that disk (or quota), or choose another folder";
    case EFBIG:
      return "Raise the limit on file sizes (ulimit -f), or choose another file system";
    case EROFS:
    case EACCES:
    case EPERM:
      return "Choose a path that you have the right to use";
    case ENOENT:
      return "Check the path: the file, or a folder on the way to it, does not exist";
    case ENOTDIR:
      return "Check the path: a part of it that should be a folder is a file";
    case EISDIR:
      return "Name a file: this is a folder";
    case EMFILE:
    case ENFILE:
      return "Raise the limit on open files (ulimit -n)";
    case EIO:
    case ESTALE:
      return "Check the disk or the network file system";
    default:
      return "Check the path and the file system";
  }
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

DataError file_error(std::string_view action, const std::filesystem::path& path, int error_number) {
  const std::string reason = std::system_category().message(error_number);
  return {"file", cat("cannot ", action, ": path=", path.string(), ", reason=", reason), remedy_for(error_number)};
}

FileDescriptor open_file(const std::filesystem::path& path, int flags, unsigned mode) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw file_error((flags & O_CREAT) != 0 ? "create" : "open", path, errno);
  return FileDescriptor(fd);
}

void write_fully(const FileDescriptor& file, const std::filesystem::path& path, std::string_view bytes) {
  if (const int fault = watched(WriteStage::Write, path)) throw file_error("write", path, fault);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) throw file_error("write", path, errno);
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void begin_write_back(const FileDescriptor& file, uint64_t offset, uint64_t bytes) {
  // Fails on pipes and on some network file systems, which is no loss.
  [[maybe_unused]] const int ignored =
      ::sync_file_range(file.get(), static_cast<off64_t>(offset), static_cast<off64_t>(bytes), SYNC_FILE_RANGE_WRITE);
}

namespace {

// One fsync of a large file may take minutes, in which nobody could tell a slow disk from one that hangs. So its data are waited
// for in parts first.
void await_write_back(const FileDescriptor& file, const std::filesystem::path& path) {
  constexpr off64_t kPart = off64_t{64} << 20;
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  for (off64_t at = 0; at + kPart < status.st_size; at += kPart) {
    constexpr unsigned kWait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (::sync_file_range(file.get(), at, kPart, kWait) != 0) {
      const bool is_disk = errno == EIO || errno == ENOSPC || errno == EDQUOT;  // it is told once: fsync would not say it again
      if (is_disk) throw file_error("sync", path, errno);
      return;  // a file system without it
    }
    note_write_progress();
  }
}

}  // namespace

void sync_file(const FileDescriptor& file, const std::filesystem::path& path) {
  if (const int fault = watched(WriteStage::Sync, path)) throw file_error("sync", path, fault);
  await_write_back(file, path);
  // EINVAL: a device or pipe, which has nothing to sync.
  if (::fsync(file.get()) != 0 && errno != EINVAL) throw file_error("sync", path, errno);
}

void sync_path(const std::filesystem::path& path) { sync_file(open_file(path, O_RDONLY), path); }

}  // namespace welkin
