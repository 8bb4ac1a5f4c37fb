// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/call_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/text.h"

namespace welkin::parallel {

CallWatch::CallWatch(std::shared_ptr<NoticeBoard> board, std::shared_ptr<const FlightRecorder> recorder, CallWatchOptions options)
    : board_(std::move(board)), recorder_(std::move(recorder)), options_(std::move(options)), thread_([this] { watch(); }) {}

CallWatch::~CallWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool CallWatch::sleep(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return over_; });
}

void CallWatch::watch() {
  while (sleep(options_.interval)) {
    try {
      if (!look()) return;
    } catch (const std::exception&) {  // rank 0 and its board are gone: nobody is left to tell
      return;
    }
  }
}

bool CallWatch::look() {
  alarm_ = alarm_ || board_->read(kAlarmNotice).has_value();
  if (alarm_) board_->post(doing_notice(options_.rank), doing_text(*recorder_));
  if (options_.hang_after.count() == 0 || reported_ || !options_.on_hang) return true;
  const auto open = recorder_->oldest_open();
  if (open && std::chrono::steady_clock::now() - open->started > options_.hang_after) report_hang(*open);
  return true;
}

void CallWatch::report_hang(const CallEntry& call) {
  reported_ = true;
  board_->post_first(kAlarmNotice, cat(options_.rank));
  board_->post(doing_notice(options_.rank), doing_text(*recorder_));
  if (!sleep(3 * options_.interval)) return;
  std::vector<std::string> others;
  for (int64_t rank = 0; rank < options_.world_size; ++rank) {
    if (rank == options_.rank) continue;
    std::string doing = board_->read(doing_notice(rank)).value_or("silent");
    std::replace(doing.begin(), doing.end(), '\n', ' ');
    others.push_back(cat("rank ", rank, ": ", doing));
  }
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - call.started;
  options_.on_hang(cat("[parallel] a call hangs beyond its deadline: call=", call.text(), ", after_s=", age.count(), ", others=[",
                       join(others, "; "), "]. Look at the first rank that is silent or in another call"));
}

}  // namespace welkin::parallel
