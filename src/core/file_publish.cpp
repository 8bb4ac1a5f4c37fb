// SPDX-License-Identifier: Apache-2.0
// The writing half of file.h: a reader sees the old state or the whole new one, whatever kills the writer.
#include <fcntl.h>
#include <stdio.h>  // renameat2 and RENAME_NOREPLACE (GNU)
#include <unistd.h>

#include <cerrno>

#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/text.h"

namespace welkin {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// A file of our own beside the target, removed again unless it was renamed away.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target) {
    // O_EXCL makes the name ours among threads, processes and hosts that share the folder. A killed writer may have left some
    // behind.
    constexpr int kAttempts = 10000;
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
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const fs::path& path() const { return path_; }
  const FileDescriptor& descriptor() const { return descriptor_; }

  void rename_to(const fs::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) throw file_error("rename the finished file to", target, errno);
    path_.clear();
    sync_path(folder_of(target));
  }

 private:
  fs::path path_;
  FileDescriptor descriptor_;
};

void sync_tree(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_symlink()) continue;
    if (entry.is_regular_file() || entry.is_directory()) sync_path(entry.path());
  }
  sync_path(folder);
}

// rename(2) would silently replace an empty folder.
void rename_new(const fs::path& from, const fs::path& to) {
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

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  TemporaryFile temporary(path);
  write_fully(temporary.descriptor(), path, bytes);
  sync_file(temporary.descriptor(), path);
  temporary.rename_to(path);
}

void write_path_atomically(const fs::path& path, const std::function<void(const fs::path&)>& write) {
  TemporaryFile temporary(path);
  write(temporary.path());
  // By its path: the writer may have replaced the file that we made.
  sync_path(temporary.path());
  temporary.rename_to(path);
}

void publish_folder(const fs::path& from, const fs::path& to) {
  sync_tree(from);
  rename_new(from, to);
  sync_path(folder_of(to));
}

}  // namespace welkin
