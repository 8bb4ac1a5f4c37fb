// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/slow_writes.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <future>
#include <utility>

#include "core/fault/write_watch.h"
#include "parallel/comm/collective_monitor.h"
#include "parallel/comm/collectives.h"
#include "train/checkpoint/shared_checkpoint.h"

namespace welkin::train {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kSign = 0;
constexpr int kSignsPerDeadline = 4;
constexpr milliseconds kLongestPause{10'000};  // with long deadlines: a rank that is lost shall be found soon

milliseconds pause_of(milliseconds deadline) { return std::min(deadline / kSignsPerDeadline, kLongestPause); }

bool has_ended(const std::future<void>& end, milliseconds within) { return end.wait_for(within) == std::future_status::ready; }

}  // namespace

milliseconds deadline_of(const parallel::Group& world) {
  return world.size() > 1 ? world.monitor().services().deadline : milliseconds(0);
}

WriteProgress::WriteProgress(milliseconds patience) : patience_(patience), seen_(write_stages()) {}

bool WriteProgress::is_alive() {
  if (const uint64_t now = write_stages(); now != seen_) {
    seen_ = now;
    since_.restart();
  }
  return since_.seconds() < std::chrono::duration<double>(patience_).count();
}

void await_all(const parallel::Group& world, const EndsWithin& ends_within) {
  if (world.size() == 1) {
    while (!ends_within(kLongestPause)) {
    }
    return;
  }
  const milliseconds deadline = deadline_of(world);
  WriteProgress progress(deadline);
  for (bool all_have = false, this_has = false; !all_have;) {
    do {
      this_has = this_has || ends_within(pause_of(deadline));
    } while (!this_has && !progress.is_alive());
    const at::Tensor busy = at::full({1}, int64_t{!this_has}, at::kLong);
    all_have = parallel::all_reduce(world, busy, parallel::Reduction::Max).item<int64_t>() == 0;
  }
}

// The thread of the caller writes: device, stream and gradient mode are its own.
void write_together(const parallel::Group& world, const std::function<void()>& write) {
  if (world.size() == 1) return write();
  std::promise<void> written;
  const std::future<void> end = written.get_future();
  std::future<void> all =
      std::async(std::launch::async, [&] { await_all(world, [&](milliseconds most) { return has_ended(end, most); }); });
  std::exception_ptr failure;
  try {
    write();
  } catch (...) {
    failure = std::current_exception();
  }
  written.set_value();
  all.get();
  if (failure) std::rethrow_exception(failure);
}

SignThread::SignThread(milliseconds deadline, std::function<void()> give)
    : thread_([this, deadline, give = std::move(give)] { run(deadline, give); }) {}

SignThread::~SignThread() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void SignThread::run(milliseconds deadline, const std::function<void()>& give) {
  WriteProgress progress(deadline);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, pause_of(deadline), [this] { return over_; })) {
    if (!progress.is_alive()) continue;
    try {
      give();
    } catch (const std::exception&) {
      return;  // whoever waited for the sign finds out
    }
  }
}

FirstWrites::FirstWrites(const parallel::Group& world) : world_(world) {
  if (world.size() > 1) signs_.emplace(deadline_of(world), [this] { give_sign(); });
}

void FirstWrites::give_sign() {
  const std::lock_guard lock(mutex_);
  if (over_ || failure_) return;
  try {
    told_by_first(world_, kSign);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void FirstWrites::ask(int64_t word, const std::function<void()>& exchange) {
  if (world_.size() > 1) {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    told_by_first(world_, word);
    over_ = over_ || word == kEnd;
    if (exchange) exchange();
  } else if (exchange) {
    exchange();
  }
}

int64_t FirstWrites::next_word(const parallel::Group& world) {
  int64_t word = kSign;
  while (word == kSign) word = told_by_first(world, 0);
  return word;
}

}  // namespace welkin::train
