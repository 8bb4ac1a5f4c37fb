// SPDX-License-Identifier: Apache-2.0
#include "core/fault/write_watch.h"

#include <atomic>
#include <utility>

namespace welkin {
namespace {

std::atomic<const WriteWatch*> the_watch = nullptr;
std::atomic<uint64_t> the_stages = 0;

}  // namespace

WriteWatchScope::WriteWatchScope(WriteWatch watch) : watch_(std::move(watch)) { the_watch = &watch_; }

WriteWatchScope::~WriteWatchScope() { the_watch = nullptr; }

int watched(WriteStage stage, const std::filesystem::path& path) {
  note_write_progress();
  const WriteWatch* watch = the_watch.load(std::memory_order_acquire);
  return watch == nullptr ? 0 : (*watch)(stage, path);
}

uint64_t write_stages() { return the_stages.load(std::memory_order_relaxed); }

void note_write_progress() { the_stages.fetch_add(1, std::memory_order_relaxed); }

}  // namespace welkin
