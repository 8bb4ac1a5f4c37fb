// SPDX-License-Identifier: Apache-2.0
#include "parallel/shared_memory/shared_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <thread>

namespace welkin::parallel {
namespace {

// Members of a group take as long as each other, so what is awaited is mostly there at once; but the core belongs to those who
// compute.
constexpr int kLooks = 64;

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

// The store and the load are both in the one order of all such operations, as those of a sleeper are: either it sees the count,
// or it is seen here.
void SharedWord::raise(uint32_t count) {
  value_.store(count, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) wake();
}

void SharedWord::wake() {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);  // NOLINT: the kernel's
}

bool SharedWord::wait(uint32_t count, std::chrono::milliseconds at_most) {
  for (int look = 0; look < kLooks; ++look) {
    if (has_reached(count)) return true;
    pause_core();
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  const uint32_t seen = value_.load(std::memory_order_seq_cst);
  if (!is_at(seen, count)) {
    timespec time{};
    time.tv_sec = at_most.count() / 1000;
    time.tv_nsec = at_most.count() % 1000 * 1'000'000;
    ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), FUTEX_WAIT, seen, &time, nullptr, 0);  // NOLINT: the kernel's
  }
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  return has_reached(count);
}

}  // namespace welkin::parallel
