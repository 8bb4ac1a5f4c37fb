// SPDX-License-Identifier: Apache-2.0
#include "core/process/signals.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "core/error.h"

namespace welkin {
namespace {

// A handler gets no argument of ours, so its state has to be static. Lock-free atomics are safe inside it.
struct SignalState {
  std::atomic<bool> watched{false};
  std::atomic<int> received{0};
  std::atomic<int64_t> first_at_ns{0};
  std::atomic<bool> first_is_of_parent{false};
  std::atomic<bool> both_ways{false};  // the signal came from the parent and from somebody else
};
static_assert(std::atomic<int64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

SignalState signal_state;

constexpr int64_t kSameEventNs = 100'000'000;
// A batch system signals the launcher and its ranks, and the launcher, the ranks' parent, passes its own on when it gets the
// processor.
constexpr int64_t kPassedOnNs = 30'000'000'000;

int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

extern "C" void welkin_on_interrupt(int number, siginfo_t* from, void* /*context*/) {
  const int64_t now = monotonic_ns();
  const bool is_of_parent = from->si_code == SI_USER && from->si_pid == getppid();
  int64_t first = 0;
  if (signal_state.first_at_ns.compare_exchange_strong(first, now)) {
    signal_state.first_is_of_parent = is_of_parent;
    signal_state.received = number;
    return;
  }
  const bool is_other_way = is_of_parent != signal_state.first_is_of_parent && !signal_state.both_ways.exchange(true);
  if (now - first > (is_other_way ? kPassedOnNs : kSameEventNs)) _exit(static_cast<int>(ExitCode::Interrupted));
}

}  // namespace

InterruptWatch::InterruptWatch(Watched watched) {
  WELKIN_CHECK(!signal_state.watched.exchange(true), "two interrupt watches at once");
  signal_state.received = 0;
  signal_state.first_at_ns = 0;
  signal_state.both_ways = false;
  for (size_t i = 0; i < kWatched.size(); ++i) {
    if (watched == Watched::All || (watched == Watched::Requeue && kWatched[i] == SIGUSR1)) watch(i);
  }
}

void InterruptWatch::watch_all() {
  for (size_t i = 0; i < kWatched.size(); ++i) watch(i);
}

void InterruptWatch::watch(size_t index) {
  if (former_[index]) return;
  if (!stack_) stack_.emplace();
  struct sigaction present {};
  sigaction(kWatched[index], nullptr, &present);
  if (kWatched[index] == SIGHUP && present.sa_handler == SIG_IGN) return;  // NOLINT: nohup has asked for it
  struct sigaction action {};
  action.sa_sigaction = welkin_on_interrupt;  // NOLINT: the signal interface
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_SIGINFO | SA_ONSTACK;  // reads and writes in progress go on: the step is to finish
  sigaction(kWatched[index], &action, &former_[index].emplace());
  sigset_t now_heard;  // a launcher starts processes with SIGUSR1 blocked, which may have come meanwhile
  sigemptyset(&now_heard);
  sigaddset(&now_heard, kWatched[index]);
  pthread_sigmask(SIG_UNBLOCK, &now_heard, nullptr);
}

InterruptWatch::~InterruptWatch() {
  for (size_t i = 0; i < kWatched.size(); ++i) {
    if (former_[i]) sigaction(kWatched[i], &*former_[i], nullptr);
  }
  signal_state.watched = false;
}

// NOLINTNEXTLINE(readability-convert-member-functions-to-static): of the watch, as signal_number()
void InterruptWatch::request(int number) { signal_state.received.store(number, std::memory_order_relaxed); }

int InterruptWatch::signal_number() const { return signal_state.received.load(std::memory_order_relaxed); }

}  // namespace welkin
