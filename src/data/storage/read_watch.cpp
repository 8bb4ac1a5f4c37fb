// SPDX-License-Identifier: Apache-2.0
#include "data/storage/read_watch.h"

#include <utility>

namespace welkin::data {
namespace {

thread_local ReadWatch* this_threads_watch = nullptr;

}  // namespace

std::optional<RunningRead> ReadWatch::running() const {
  const std::lock_guard lock(mutex_);
  if (place_.path == nullptr) return {};
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - place_.since;
  return RunningRead{*place_.path, place_.offset, age.count()};
}

ReadWatch::Place ReadWatch::exchange(const Place& place) {
  const std::lock_guard lock(mutex_);
  return std::exchange(place_, place);
}

WatchThisThread::WatchThisThread(ReadWatch& watch) : former_(std::exchange(this_threads_watch, &watch)) {}
WatchThisThread::~WatchThisThread() { this_threads_watch = former_; }

ReadMark::ReadMark(const std::filesystem::path& path, uint64_t offset) : watch_(this_threads_watch) {
  if (watch_ != nullptr) outer_ = watch_->exchange({&path, offset, std::chrono::steady_clock::now()});
}

ReadMark::~ReadMark() {
  if (watch_ != nullptr) watch_->exchange(outer_);
}

}  // namespace welkin::data
