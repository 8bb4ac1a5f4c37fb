// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/stall_watch.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "core/text.h"

namespace welkin::data {

std::string stalled_reads(ReadWatches watches, int64_t num_threads, double seconds) {
  std::optional<RunningRead> oldest;
  int64_t count = 0;
  for (const auto& watch : watches) {
    const auto running = watch->running();
    if (!running || running->seconds < seconds) continue;
    ++count;
    if (!oldest || running->seconds > oldest->seconds) oldest = running;
  }
  if (!oldest) return {};
  return cat("[data] a read does not come back: path=", oldest->path.string(), ", offset=", oldest->offset,
             ", seconds=", oldest->seconds, ", reading_threads=", count, " of ", num_threads,
             ". Check the file system; the run waits.");
}

StallWatch::StallWatch(ReadWatches watches, int64_t num_threads, double seconds, Report report)
    : thread_([=, report = std::move(report)](const std::stop_token& stop) {
        pthread_setname_np(pthread_self(), "welkin-watch");
        std::mutex mutex;
        std::condition_variable_any woken;
        std::unique_lock lock(mutex);
        const double look_seconds = seconds / 2;
        for (double wait_seconds = look_seconds;;) {
          woken.wait_for(lock, stop, std::chrono::duration<double>(wait_seconds), [] { return false; });
          if (stop.stop_requested()) return;
          const std::string text = stalled_reads(watches, num_threads, seconds);
          if (!text.empty()) report(text);
          wait_seconds = text.empty() ? look_seconds : std::max(2 * wait_seconds, seconds);
        }
      }) {}

}  // namespace welkin::data
