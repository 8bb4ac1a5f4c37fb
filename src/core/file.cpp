// SPDX-License-Identifier: Apache-2.0
#include "core/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/text.h"

namespace welkin {
namespace {

struct OpenedFile {
  FileDescriptor descriptor;
  uint64_t size = 0;
};

OpenedFile open_regular(const std::filesystem::path& path) {
  // O_NONBLOCK: a named pipe without a writer must not hang us before we have seen that it is no file.
  OpenedFile file{open_file(path, O_RDONLY | O_NONBLOCK)};
  struct stat status {};
  if (::fstat(file.descriptor.get(), &status) != 0) throw file_error("inspect", path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw DataError("file", cat("not a regular file: path=", path.string()), "Name a file, not a folder, pipe or device");
  }
  file.size = static_cast<uint64_t>(status.st_size);
  return file;
}

[[noreturn]] void refuse_size(const std::filesystem::path& path, uint64_t size, uint64_t limit) {
  throw DataError("file", cat("too large for what it should hold: path=", path.string(), ", bytes>=", size, ", limit=", limit),
                  "Check that this is the right file");
}

}  // namespace

std::string read_file(const std::filesystem::path& path, uint64_t limit_bytes) {
  const OpenedFile file = open_regular(path);
  if (file.size > limit_bytes) refuse_size(path, file.size, limit_bytes);
  // Read to the end instead of trusting the size: files under /proc say 0, and a file may grow while it is read.
  std::string bytes(static_cast<size_t>(file.size) + 1, '\0');
  size_t filled = 0;
  for (;;) {
    if (filled == bytes.size()) bytes.resize(2 * filled + 4096);
    const ssize_t count = ::read(file.descriptor.get(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw file_error("read", path, errno);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
    if (filled > limit_bytes) refuse_size(path, filled, limit_bytes);
  }
  bytes.resize(filled);
  return bytes;
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code problem;
  std::filesystem::directory_iterator entry(folder, problem);
  for (; !problem && entry != std::filesystem::directory_iterator(); entry.increment(problem)) found.push_back(entry->path());
  const bool is_none = problem == std::errc::no_such_file_or_directory || problem == std::errc::not_a_directory;
  if (problem && !is_none) throw file_error("list", folder, problem.value());
  return found;
}

bool is_there(const std::filesystem::path& path) {
  std::error_code unknown;
  return std::filesystem::exists(path, unknown);
}

void make_folders(const std::filesystem::path& path) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (!problem) return;
  std::filesystem::path missing = path;
  std::error_code ignored;
  while (missing.has_parent_path() && missing.parent_path() != missing &&
         !std::filesystem::exists(missing.parent_path(), ignored)) {
    missing = missing.parent_path();
  }
  throw file_error(cat("make the folders of ", path.string(), ", the first that is missing"), missing, problem.value());
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const OpenedFile file = open_regular(path);
  if (file.size == 0) return;
  void* address = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.descriptor.get(), 0);
  if (address == MAP_FAILED) throw file_error("map", path, errno);
  data_ = static_cast<const std::byte*>(address);
  size_ = file.size;
}

MappedFile::~MappedFile() {
  // const_cast: munmap takes a plain pointer; nothing is written.
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace welkin
