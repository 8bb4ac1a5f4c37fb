// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/stage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/process/host.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "data/datasets/field_file.h"
#include "data/storage/watched_file.h"

namespace welkin::data {
namespace {

namespace fs = std::filesystem;

constexpr double kReportSeconds = 5;
constexpr uint64_t kMostNoteBytes = 1 << 26;

// Identifies the source of a copy in one line of text.
std::string source_note(const fs::path& source) {
  struct stat facts {};
  if (::stat(source.c_str(), &facts) != 0) throw file_error("stage", source, errno);
  return cat("welkin-stage 1 bytes=", facts.st_size, " mtime=", facts.st_mtim.tv_sec, ".", facts.st_mtim.tv_nsec,
             " source=", fs::absolute(source).string(), "\n");
}

// A lock for all processes of this node, released when its descriptor closes.
class StageLock {
 public:
  StageLock(const fs::path& path, const std::function<void(const std::string&)>& report)
      : file_(open_file(path, O_RDWR | O_CREAT)) {
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return;
    if (report) report(cat("Staging: another process copies ", path.stem().string(), ", waiting for it"));
    while (::flock(file_.get(), LOCK_EX) != 0) {
      if (errno != EINTR) throw file_error("lock", path, errno);
    }
  }

 private:
  FileDescriptor file_;
};

struct StagedPaths {
  fs::path copy, note, part, hashes, lock;
};

StagedPaths staged_paths(const fs::path& source, const fs::path& folder) {
  const fs::path from = fs::absolute(source).lexically_normal();
  // Files of the same name in different folders get different places.
  const std::string place =
      cat(from.parent_path().filename().string(), "-", hex_digits(fnv1a64(from.parent_path().string())).substr(0, 8));
  const std::string copy = (folder / place / from.filename()).string();
  return {copy, copy + ".welkin", copy + ".part", copy + ".part.hashes", copy + ".lock"};
}

bool is_good_copy(const StagedPaths& paths, const std::string& note) {
  std::error_code error;
  if (!fs::exists(paths.copy, error)) return false;
  if (!fs::exists(paths.note, error)) {
    throw DataError("stage", cat("a file that Welkin did not write is in the place of a copy: path=", paths.copy.string()),
                    "Choose another --stage folder, or move that file away");
  }
  if (read_file(paths.note, 1 << 16) != note) return false;
  return note.starts_with(cat("welkin-stage 1 bytes=", fs::file_size(paths.copy), " "));
}

void check_room(const fs::path& folder, uint64_t needed) {
  struct statvfs facts {};
  if (::statvfs(folder.c_str(), &facts) != 0) throw file_error("look at the free space of", folder, errno);
  const uint64_t free = uint64_t{facts.f_bavail} * facts.f_frsize;
  if (needed <= free) return;
  throw DataError(
      "stage",
      cat("no room for a copy: folder=", folder.string(), ", needed=", format_bytes(needed), ", free=", format_bytes(free)),
      "Free space there, choose another --stage folder, or read the files where they are");
}

// One file's copy in blocks, each with its hash in `hashes`, appended after the block.
class BlockCopy {
 public:
  BlockCopy(const fs::path& source, const StagedPaths& paths, const std::string& note, const StageOptions& options)
      : source_(source), paths_(paths), note_(note), options_(options), block_(options.block_bytes) {}

  void run() {
    const uint64_t done = resume_from();
    check_room(paths_.part.parent_path(), source_.size() - done * options_.block_bytes);
    copy_from(done);
    verify();
    publish();
  }

 private:
  uint64_t num_blocks() const { return (source_.size() + options_.block_bytes - 1) / options_.block_bytes; }
  std::span<std::byte> block(uint64_t number) {
    const uint64_t left = source_.size() - number * options_.block_bytes;
    return std::span(block_).first(static_cast<size_t>(std::min(left, options_.block_bytes)));
  }

  // Takes over the blocks of an earlier attempt that are intact.
  uint64_t resume_from() {
    std::error_code error;
    std::istringstream lines(fs::exists(paths_.hashes, error) ? read_file(paths_.hashes, kMostNoteBytes) : "");
    std::string line;
    const std::string head = cat(options_.block_bytes, " ", note_.substr(0, note_.size() - 1));
    if (!std::getline(lines, line) || line != head) {
      part_ = open_file(paths_.part, O_RDWR | O_CREAT | O_TRUNC);
      notes_ = open_file(paths_.hashes, O_WRONLY | O_CREAT | O_TRUNC);
      write_fully(notes_, paths_.hashes, head + "\n");
      return 0;
    }
    part_ = open_file(paths_.part, O_RDWR | O_CREAT);
    while (std::getline(lines, line) && line.size() == 16 && hashes_.size() < num_blocks()) {
      const auto bytes = block(hashes_.size());
      if (!read_back(hashes_.size(), bytes) || hex_digits(xxh3_64(bytes)) != line) break;
      hashes_.push_back(line);
    }
    notes_ = open_file(paths_.hashes, O_WRONLY | O_CREAT | O_TRUNC);
    write_fully(notes_, paths_.hashes, cat(head, "\n", join(hashes_, "\n"), hashes_.empty() ? "" : "\n"));
    if (!hashes_.empty() && options_.report) {
      options_.report(cat("Staging: the broken copy of ", source_.path().filename().string(), " goes on after ",
                          format_bytes(hashes_.size() * options_.block_bytes)));
    }
    return hashes_.size();
  }

  void copy_from(uint64_t first) {
    const Stopwatch watch;
    double reported = 0;
    for (uint64_t i = first; i < num_blocks(); ++i) {
      if (options_.before_block) options_.before_block();
      const auto bytes = block(i);
      source_.read(i * options_.block_bytes, bytes);
      write_at(i * options_.block_bytes, bytes);
      hashes_.push_back(hex_digits(xxh3_64(bytes)));
      write_fully(notes_, paths_.hashes, hashes_.back() + "\n");
      if (watch.seconds() - reported < kReportSeconds) continue;
      reported = watch.seconds();
      report_progress(i + 1, static_cast<double>((i + 1 - first) * options_.block_bytes) / reported);
    }
    sync_file(part_, paths_.part);
  }

  void report_progress(uint64_t done, double bytes_per_second) const {
    if (!options_.report) return;
    options_.report(cat("Staging: ", source_.path().filename().string(), ", ", format_bytes(done * options_.block_bytes), " of ",
                        format_bytes(source_.size()), ", ", format_bytes(static_cast<uint64_t>(bytes_per_second)), "/s"));
  }

  void write_at(uint64_t offset, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::pwrite(part_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw file_error("write", paths_.part, errno);
      bytes = bytes.subspan(static_cast<size_t>(count));
      offset += static_cast<uint64_t>(count);
    }
  }

  bool read_back(uint64_t number, std::span<std::byte> bytes) const {
    uint64_t offset = number * options_.block_bytes;
    while (!bytes.empty()) {
      const ssize_t count = ::pread(part_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(count));
      offset += static_cast<uint64_t>(count);
    }
    return true;
  }

  // The pages are dropped first, so that the check reads the disk.
  void verify() {
    ::posix_fadvise(part_.get(), 0, 0, POSIX_FADV_DONTNEED);
    for (uint64_t i = 0; i < num_blocks(); ++i) {
      const auto bytes = block(i);
      if (read_back(i, bytes) && hex_digits(xxh3_64(bytes)) == hashes_[i]) continue;
      throw DataError("stage",
                      cat("a copy is not what was written: path=", paths_.part.string(), ", offset=", i * options_.block_bytes),
                      "Check that disk, or choose another --stage folder");
    }
    source_.check_unchanged(0);
  }

  // The note is written first: a copy without one would count as somebody else's file. It must not stand beside an older copy.
  void publish() {
    fs::remove(paths_.copy);
    write_file_atomically(paths_.note, note_);
    fs::rename(paths_.part, paths_.copy);
    sync_path(paths_.copy.parent_path());
    fs::remove(paths_.hashes);
  }

  WatchedFile source_;
  const StagedPaths& paths_;
  const std::string& note_;
  const StageOptions& options_;
  std::vector<std::byte> block_;
  std::vector<std::string> hashes_;
  FileDescriptor part_, notes_;
};

}  // namespace

fs::path stage_file(const fs::path& source, const StageOptions& options) {
  const std::string note = source_note(source);
  const StagedPaths paths = staged_paths(source, options.folder);
  make_folders(paths.copy.parent_path());
  const StageLock lock(paths.lock, options.report);
  if (is_good_copy(paths, note)) return paths.copy;
  const Stopwatch watch;
  BlockCopy(source, paths, note, options).run();
  if (options.report)
    options.report(cat("Staging: ", source.string(), " -> ", paths.copy.string(), " in ", watch.seconds(), " s"));
  return paths.copy;
}

config::RunConfig staged(const config::RunConfig& config, const std::function<void(const std::string&)>& report,
                         const std::function<void()>& before_block) {
  if (!config.data.stage || config.data.data_loader_config == config::Loader::Synthetic) return config;
  config::RunConfig result = config;
  config::DataConfig& data = result.data;
  const StageOptions options{.folder = *config.data.stage, .report = report, .before_block = before_block};
  const bool is_npy = data.data_loader_config == config::Loader::DaliLowMem;
  std::vector<std::string*> files;
  if (data.dataset == "nbody" && is_npy) {
    files = {&data.train_path_npy_data, &data.train_path_npy_label, &data.val_path_npy_data, &data.val_path_npy_label};
  } else if (data.dataset == "nbody") {
    files = {&data.train_path, &data.val_path};
  }
  for (std::string* path : files) {
    if (!path->empty()) *path = stage_file(*path, options).string();
  }
  if (data.dataset != "era5") return result;
  for (std::string* folder : {&data.train_data_path, &data.valid_data_path}) {
    if (folder->empty()) continue;
    fs::path copies;
    for (const fs::path& file : list_field_files(*folder)) copies = stage_file(file, options).parent_path();
    *folder = copies.string();
  }
  return result;
}

}  // namespace welkin::data
