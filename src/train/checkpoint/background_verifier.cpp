// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/background_verifier.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/text.h"
#include "train/checkpoint/checkpoint.h"

namespace welkin::train {
namespace {

// Lowers the priorities of this thread alone: Linux sets both per thread. If it refuses, the thread reads like any other.
void yield_to_others() {
  constexpr int kOfThread = 1, kIdleClass = 3, kClassShift = 13, kLeast = 19;  // ioprio_set(2)
  syscall(SYS_ioprio_set, kOfThread, 0, kIdleClass << kClassShift);
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLeast);
}

// Empty: not readable.
std::string index_text(const std::filesystem::path& folder) {
  constexpr uint64_t kLargest = uint64_t{256} << 20;
  try {
    return read_file(folder / "index.json", kLargest);
  } catch (const Error&) {
    return {};
  }
}

// Drops the file from the page cache: a read from memory proves nothing about the disk.
void forget_cached(const std::filesystem::path& path) {
  if (!is_there(path)) return;
  const FileDescriptor file = open_file(path, O_RDONLY);
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace

BackgroundVerifier::BackgroundVerifier(std::chrono::milliseconds interval, ListFolders list, Report report)
    : interval_(interval), list_(std::move(list)), report_(std::move(report)), thread_([this] { run(); }) {}

BackgroundVerifier::~BackgroundVerifier() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wakes_.notify_all();
  thread_.join();
}

std::vector<std::filesystem::path> BackgroundVerifier::take_damaged() {
  const std::lock_guard lock(mutex_);
  return std::exchange(damaged_, {});
}

void BackgroundVerifier::run() {
  yield_to_others();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (wakes_.wait_for(lock, interval_, [this] { return stops_.load(); })) return;
    }
    try {
      if (const auto kept = longest_unread()) verify(*kept);
    } catch (const std::exception&) {
      continue;  // a disk that does not answer now: it is asked again
    }
  }
}

// A folder that is seen for the first time was just written: it goes last, so that old ones need not wait for ever.
std::optional<BackgroundVerifier::Kept> BackgroundVerifier::longest_unread() {
  std::optional<Kept> found;
  std::map<std::filesystem::path, int64_t> present;
  const std::vector<Kept> all = list_();
  for (auto kept = all.rbegin(); kept != all.rend(); ++kept) {
    const auto known = turn_.find(kept->folder);
    const int64_t turn = known == turn_.end() ? ++turns_ : known->second;
    present.emplace(kept->folder, turn);
    if (turn >= 0 && (!found || turn < present.at(found->folder))) found = *kept;
  }
  turn_ = std::move(present);
  return found;
}

// A folder that was removed or replaced meanwhile is not reported.
void BackgroundVerifier::verify(const Kept& kept) {
  const std::filesystem::path& folder = kept.folder;
  turn_[folder] = ++turns_;
  const std::string index = index_text(folder);
  try {
    const Checkpoint checkpoint(folder, kept.is_on_node ? OpeningCheck::OnNode : OpeningCheck::Sizes);
    for (const auto& [name, file] : checkpoint.index().files) forget_cached(folder / name);
    const auto num_files = static_cast<int64_t>(checkpoint.index().files.size());
    for (int64_t file = 0; file < num_files; ++file) {
      if (stops_) return;
      checkpoint.verify_share(file, num_files);
    }
    ++num_verified_;
  } catch (const Error& error) {
    if (!is_there(folder) || index_text(folder) != index) return;
    turn_[folder] = -1;
    {
      const std::lock_guard lock(mutex_);
      damaged_.push_back(folder);
    }
    report_(cat("A kept checkpoint was written whole and is not any more: ", error.what()));
  }
}

}  // namespace welkin::train
