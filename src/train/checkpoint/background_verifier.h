// SPDX-License-Identifier: Apache-2.0
// Reads kept checkpoints again while a run goes on, so that bits that a disk has lost are known before they are needed. Its
// thread reads when the processor and the disk have nothing else to do.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace welkin::train {

class BackgroundVerifier {
 public:
  struct Kept {
    std::filesystem::path folder;
    bool is_on_node = false;  // on a node's disk, which may have the files of some ranks only
  };
  // Lists the present checkpoint folders, in each place the newest first. Called on the thread.
  using ListFolders = std::function<std::vector<Kept>()>;
  // Gets the error's text for a damaged folder, once. Called on the thread.
  using Report = std::function<void(const std::string&)>;

  // Verifies one folder every `interval`: the one that was not read for the longest time.
  BackgroundVerifier(std::chrono::milliseconds interval, ListFolders list, Report report);
  // Stops after the file that is being read.
  ~BackgroundVerifier();
  BackgroundVerifier(const BackgroundVerifier&) = delete;
  BackgroundVerifier& operator=(const BackgroundVerifier&) = delete;

  // The folders that were found damaged since the last call. Any thread.
  std::vector<std::filesystem::path> take_damaged();
  int64_t num_verified() const { return num_verified_; }  // whole ones, read again

 private:
  void run();
  void verify(const Kept& kept);
  std::optional<Kept> longest_unread();

  std::chrono::milliseconds interval_;
  ListFolders list_;
  Report report_;
  std::map<std::filesystem::path, int64_t> turn_;  // the turn at which a folder was read
  int64_t turns_ = 0;
  std::vector<std::filesystem::path> damaged_;  // not taken yet
  std::atomic<int64_t> num_verified_{0};
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::atomic<bool> stops_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace welkin::train
