// SPDX-License-Identifier: Apache-2.0
#include "core/fault/write_watch.h"

#include <atomic>
#include <utility>

namespace welkin {
namespace {

std::atomic<const WriteWatch*> the_watch = nullptr;

}  // namespace

WriteWatchScope::WriteWatchScope(WriteWatch watch) : watch_(std::move(watch)) { the_watch = &watch_; }

WriteWatchScope::~WriteWatchScope() { the_watch = nullptr; }

int watched(WriteStage stage, const std::filesystem::path& path) {
  const WriteWatch* watch = the_watch.load(std::memory_order_acquire);
  return watch == nullptr ? 0 : (*watch)(stage, path);
}

}  // namespace welkin
