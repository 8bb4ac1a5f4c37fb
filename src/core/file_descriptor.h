// SPDX-License-Identifier: Apache-2.0
// An owned POSIX file descriptor, and error texts for refused system calls. Below file.h; for writers that keep a file open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace welkin {

// Closes on destruction. Data must be synced before: an error of close() itself is not reported.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// "cannot <action> <path>: <errno's text>" with the remedy that fits the errno (full disk, read-only, missing folder, ...).
DataError file_error(std::string_view action, const std::filesystem::path& path, int error_number);

// open(2) with O_CLOEXEC, repeated on EINTR. Throws file_error; `mode` is for O_CREAT and subject to the umask.
FileDescriptor open_file(const std::filesystem::path& path, int flags, unsigned mode = 0666);

// Writes all bytes, in as many calls as the system needs. `path` is for the message.
void write_fully(const FileDescriptor& file, const std::filesystem::path& path, std::string_view bytes);

// Asks the system to send these bytes to the disk now and goes on: a later sync_file has less to wait for. Only a hint
// (sync_file_range(2)): file systems without it ignore it, and errors are for sync_file to report.
void begin_write_back(const FileDescriptor& file, uint64_t offset, uint64_t bytes);

// fsync of an open file; of a file or folder by its path.
void sync_file(const FileDescriptor& file, const std::filesystem::path& path);
void sync_path(const std::filesystem::path& path);

}  // namespace welkin
