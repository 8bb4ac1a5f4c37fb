// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/watchdog.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/text.h"

namespace welkin::parallel {

Watchdog::Watchdog(std::shared_ptr<KeyValueStore> kv_store, std::shared_ptr<const FlightRecorder> recorder,
                   WatchdogOptions options)
    : kv_store_(std::move(kv_store)),
      recorder_(std::move(recorder)),
      options_(std::move(options)),
      thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool Watchdog::sleep(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return over_; });
}

void Watchdog::watch() {
  while (sleep(options_.interval)) {
    try {
      if (!look()) return;
    } catch (const std::exception&) {  // rank 0 and its store are gone: nobody is left to tell
      return;
    }
  }
}

bool Watchdog::look() {
  alarm_ = alarm_ || kv_store_->read(kAlarmKey).has_value();
  if (alarm_) kv_store_->set(status_key(options_.rank), status_text(*recorder_));
  if (options_.hang_after.count() == 0 || reported_ || !options_.on_hang) return true;
  const auto open = recorder_->oldest_open();
  if (!open) return true;
  const bool has_own_limit = open->is_on_gpu && options_.gpu_hang_after.count() > 0;
  const auto limit = has_own_limit ? options_.gpu_hang_after : options_.hang_after;
  if (std::chrono::steady_clock::now() - open->started > limit) report_hang(*open);
  return true;
}

void Watchdog::report_hang(const CallEntry& call) {
  reported_ = true;
  kv_store_->set_if_absent(kAlarmKey, cat(options_.rank));
  kv_store_->set(status_key(options_.rank), status_text(*recorder_));
  if (!sleep(3 * options_.interval)) return;
  std::vector<std::string> others;
  for (int64_t rank = 0; rank < options_.world_size; ++rank) {
    if (rank == options_.rank) continue;
    std::string doing = kv_store_->read(status_key(rank)).value_or("silent");
    std::replace(doing.begin(), doing.end(), '\n', ' ');
    others.push_back(cat("rank ", rank, ": ", doing));
  }
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - call.started;
  options_.on_hang(cat("[parallel] a call hangs beyond its deadline: call=", call.text(), ", state=", name_of(call.state),
                       ", after_s=", age.count(), ", others=[", join(others, "; "),
                       "]. Look at the first rank that is silent or in another call"));
}

}  // namespace welkin::parallel
