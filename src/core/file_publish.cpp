// SPDX-License-Identifier: Apache-2.0
// The writing half of file.h: a reader sees the old state or the whole new one, whatever kills the writer.
#include <fcntl.h>
#include <stdio.h>  // renameat2 and RENAME_NOREPLACE (GNU)
#include <unistd.h>

#include <cerrno>
#include <set>
#include <utility>

#include "core/fault/write_watch.h"
#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/files_together.h"
#include "core/output_check.h"
#include "core/text.h"

namespace welkin {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

// A file of our own beside the target, removed again unless it was renamed away.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target) {
    // O_EXCL makes the name ours among threads, processes and hosts that share the folder. A killed writer may have left some
    // behind.
    constexpr int kAttempts = 10000;
    if (const int fault = watched(WriteStage::Create, target)) throw file_error("create", target, fault);
    for (int attempt = 0;; ++attempt) {
      path_ = folder_of(target) / cat(".", target.filename().string(), ".", ::getpid(), ".", attempt, ".tmp");
      const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      descriptor_ = FileDescriptor(fd);
      if (fd >= 0) return;
      if (errno != EEXIST || attempt == kAttempts) throw file_error("create", target, errno);
    }
  }
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  TemporaryFile(TemporaryFile&& other) noexcept
      : path_(std::exchange(other.path_, {})), descriptor_(std::move(other.descriptor_)) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;

  const fs::path& path() const { return path_; }
  const FileDescriptor& descriptor() const { return descriptor_; }

  // The caller syncs the folder afterwards.
  void rename_to(const fs::path& target) {
    if (const int fault = watched(WriteStage::Rename, target)) throw file_error("rename the finished file to", target, fault);
    if (::rename(path_.c_str(), target.c_str()) != 0) throw file_error("rename the finished file to", target, errno);
    path_.clear();
  }

 private:
  fs::path path_;
  FileDescriptor descriptor_;
};

namespace {

// The file that a link names, so that the link stays; a link to nothing is replaced.
fs::path target_of(const fs::path& path) {
  std::error_code missing;
  if (!fs::is_symlink(path, missing)) return path;
  const fs::path target = fs::canonical(path, missing);
  return missing ? path : target;
}

// Devices and pipes are written to: a rename would put a file in their place for all processes (/dev/null).
bool is_no_file(const fs::path& path) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  return type == fs::file_type::character || type == fs::file_type::fifo || type == fs::file_type::block ||
         type == fs::file_type::socket;
}

void sync_tree(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_symlink()) continue;
    if (entry.is_regular_file() || entry.is_directory()) sync_path(entry.path());
  }
  sync_path(folder);
}

// rename(2) would silently replace an empty folder.
void rename_new(const fs::path& from, const fs::path& to) {
  if (const int fault = watched(WriteStage::Rename, to)) throw file_error("move the finished folder to", to, fault);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
  int problem = errno;
  if (problem == EINVAL || problem == ENOSYS) {  // some network file systems do not know the flag
    problem = fs::exists(fs::symlink_status(to)) ? EEXIST : 0;
    if (problem == 0 && ::rename(from.c_str(), to.c_str()) == 0) return;
    if (problem == 0) problem = errno;
  }
  throw file_error("move the finished folder to", to, problem);
}

}  // namespace

std::string trouble_with_output(const fs::path& path) {
  std::error_code ignored;
  if (path.empty()) return "it has no name";
  if (is_no_file(path)) return ::access(path.c_str(), W_OK) == 0 ? "" : "it may not be written to";
  if (fs::is_directory(path, ignored)) return "it is a folder";
  const fs::path folder = folder_of(target_of(path));
  if (!fs::is_directory(folder, ignored)) return cat("there is no folder ", folder.string());
  if (::access(folder.c_str(), W_OK) != 0) return cat("nothing may be written to the folder ", folder.string());
  return {};
}

void check_output(std::string_view component, std::string_view name, const fs::path& path) {
  const std::string trouble = trouble_with_output(path);
  if (trouble.empty()) return;
  throw ConfigError(component, cat("this file cannot be written: ", name, "=", path.string(), ", because ", trouble),
                    "Name a file in a folder that is there and may be written to");
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  if (is_no_file(path)) return write_fully(open_file(path, O_WRONLY), path, bytes);
  const fs::path target = target_of(path);
  TemporaryFile temporary(target);
  write_fully(temporary.descriptor(), path, bytes);
  sync_file(temporary.descriptor(), path);
  temporary.rename_to(target);
  sync_path(folder_of(target));
}

void write_path_atomically(const fs::path& path, const std::function<void(const fs::path&)>& write) {
  FilesTogether one;
  one.write(path, write);
  one.finish();
}

struct FilesTogether::File {
  fs::path target;
  TemporaryFile temporary;
};

FilesTogether::FilesTogether() = default;
FilesTogether::~FilesTogether() = default;

void FilesTogether::write(const fs::path& path, const std::function<void(const fs::path&)>& write) {
  if (is_no_file(path)) {
    throw DataError("file", cat("a device or pipe cannot hold this file: path=", path.string()), "Name a file");
  }
  const fs::path target = target_of(path);
  TemporaryFile temporary(target);
  write(temporary.path());
  files_.push_back({target, std::move(temporary)});
}

// A sync makes the file system write data of other files too, so a sync after each file would delay the next one.
void FilesTogether::finish() {
  std::set<fs::path> folders;
  // Syncs them by their paths: the writers may have replaced the files that we made.
  for (const File& file : files_) sync_path(file.temporary.path());
  for (File& file : files_) {
    file.temporary.rename_to(file.target);
    folders.insert(folder_of(file.target));
  }
  files_.clear();
  for (const fs::path& folder : folders) sync_path(folder);
}

void publish_folder(const fs::path& from, const fs::path& to) {
  sync_tree(from);
  rename_new(from, to);
  sync_path(folder_of(to));
}

void publish_folder_over(const fs::path& from, const fs::path& to, const fs::path& former) {
  std::error_code absent;
  if (!fs::exists(fs::symlink_status(to, absent))) return publish_folder(from, to);
  sync_tree(from);
  if (::rename(to.c_str(), former.c_str()) != 0) throw file_error("move the folder that is replaced to", former, errno);
  try {
    rename_new(from, to);
  } catch (const DataError&) {
    ::rename(former.c_str(), to.c_str());
    throw;
  }
  sync_path(folder_of(to));
}

}  // namespace welkin
