// SPDX-License-Identifier: Apache-2.0
#include "parallel/elastic/round_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "parallel/elastic/open_connections.h"

namespace welkin::parallel {
namespace {

constexpr auto kWatchPatience = std::chrono::seconds(60);

// Longer intervals for more ranks, since all of them ask.
std::chrono::milliseconds interval_of(const launch::Round& round) {
  return std::chrono::milliseconds(100) * std::max<int64_t>(1, static_cast<int64_t>(round.members.size()) / 64);
}

}  // namespace

RoundWatch::RoundWatch(const launch::BoardPlace& board, launch::Round round, launch::ProcessId id)
    : board_(board, kWatchPatience), round_(std::move(round)), id_(id), before_(open_connections()), thread_([this] {
        watch();
      }) {}

RoundWatch::~RoundWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void RoundWatch::end() {
  is_over_ = true;
  shut_down_since(before_);
}

// If the board does not answer, the job is over, and with it the round.
void RoundWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval_of(round_), [this] { return is_ending_; })) {
    lock.unlock();
    try {
      if (!is_over_) look();
    } catch (const std::exception&) {
      is_over_ = true;
    }
    if (is_over_) shut_down_since(before_);  // repeatedly: a running call may have made a new connection
    lock.lock();
  }
}

void RoundWatch::look() {
  const auto now = launch::parse_now(board_.read(launch::kNowKey).value_or(""));
  if (!now) return;
  if (now->number == round_.number && now->state == launch::RoundState::Requested) is_requested_ = true;
  if (now->number == round_.number && now->state != launch::RoundState::Closing) return;
  board_.set(launch::seen_key(round_.number, text_of(id_)), "seen");
  is_over_ = true;
}

}  // namespace welkin::parallel
