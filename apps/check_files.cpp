// SPDX-License-Identifier: Apache-2.0
// The executable `welkin-check-files` reads foreign files in its own process, since some damaged files crash the library that
// reads them. libwelkin.so runs it; users do not call it.
//   welkin-check-files hdf5 FILE...      opens files as a reader would and reports its progress (src/data/check/check_child.h)
//   welkin-check-files ingest LIBRARY    serves libwelkin_ingest.so over its pipes (src/data/ingest/source/remote.h)
// It does not link torch, so that it starts in a few milliseconds.
#include <hdf5.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>

#include "data/check/check_child.h"
#include "data/check/guarded_heap.h"
#include "data/formats/hdf5/hdf5_walk.h"
#include "data/ingest/source/component.h"
#include "data/ingest/source/remote.h"

// The linker gives the library these functions instead of its own (apps/CMakeLists.txt). A damaged size makes the library ask
// for any number of bytes. Refused, it goes on with an error; a reader with more memory would succeed and copy from beyond the
// file's end. So the request itself counts as damage. Blocks end at an inaccessible page (src/data/check/guarded_heap.h).
void* checked_malloc(size_t bytes) asm("__wrap_malloc");
void* checked_calloc(size_t count, size_t bytes) asm("__wrap_calloc");
void* checked_realloc(void* old, size_t bytes) asm("__wrap_realloc");
void checked_free(void* block) asm("__wrap_free");
// The C library's functions, which the linker renames.
void* own_malloc(size_t bytes) asm("__real_malloc");
void* own_calloc(size_t count, size_t bytes) asm("__real_calloc");
void* own_realloc(void* old, size_t bytes) asm("__real_realloc");
void own_free(void* block) asm("__real_free");

namespace {

constexpr size_t kMostAtOnce = size_t{512} << 20;  // four times what walk_hdf5_file() reads at once

void require_possible(size_t bytes) {
  if (bytes > kMostAtOnce) std::abort();
}

constinit welkin::data::GuardedHeap guarded;

constexpr rlim_t kSecondsPerStep = 4;  // CPU seconds: steps take microseconds, and a damaged file can make the library loop
[[maybe_unused]] constexpr rlim_t kMostBytes =
    (rlim_t{16} << 30) + welkin::data::GuardedHeap::kAddresses;  // a damaged size makes the library ask for any number

void say(char byte) {
  if (write(STDOUT_FILENO, &byte, 1) != 1) _exit(1);  // nobody waits any more
}

void set_limit(__rlimit_resource_t what, rlim_t soft) {
  rlimit limit{};
  getrlimit(what, &limit);
  limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
  setrlimit(what, &limit);
}

// Signals of a terminal or a scheduler are meant for the run, which ends this process itself.
void leave_signals_to_the_parent() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE}) std::signal(number, SIG_IGN);
}

rlim_t used_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<rlim_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
}

// Called between two steps. The parent waits for seconds, so an occasional byte is enough.
void say_progress() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last{};
  const auto now = Clock::now();
  if (now - last < std::chrono::milliseconds(100)) return;
  last = now;
  set_limit(RLIMIT_CPU, used_seconds() + kSecondsPerStep);
  say(welkin::data::kFileProgress);
}

// This process ends with the thread that waits for it.
void check_hdf5(std::span<char*> paths) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  set_limit(RLIMIT_AS, kMostBytes);
  guarded.open();
  H5set_free_list_limits(0, 0, 0, 0, 0, 0);  // kept blocks would be used again, beside others
#endif
  for (const char* path : paths) {
    set_limit(RLIMIT_CPU, used_seconds() + kSecondsPerStep);
    say(welkin::data::kFileBegun);
    welkin::data::walk_hdf5_file(path, say_progress);
    say(welkin::data::kFileFinished);
  }
}

// Ends at the end of its input. Output that the libraries print must not mix with the answers.
int serve_ingest(const char* library) {
  const int answers = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  try {
    const auto allow_seconds = [](int64_t seconds) { set_limit(RLIMIT_CPU, used_seconds() + static_cast<rlim_t>(seconds)); };
    return welkin::data::ingest::serve_component(welkin::data::ingest::Component(library), STDIN_FILENO, answers, allow_seconds);
  } catch (const std::exception&) {
    return 1;  // the parent, which loads the library itself, reports why
  }
}

}  // namespace

void* checked_malloc(size_t bytes) {
  require_possible(bytes);
  void* const block = guarded.take(bytes);
  return block != nullptr ? block : own_malloc(bytes);
}

void* checked_calloc(size_t count, size_t bytes) {
  size_t total = 0;
  require_possible(__builtin_mul_overflow(count, bytes, &total) ? kMostAtOnce + 1 : total);
  void* const block = guarded.take(total);  // its pages are new, and so zero
  return block != nullptr ? block : own_calloc(count, bytes);
}

void* checked_realloc(void* old, size_t bytes) {
  require_possible(bytes);
  if (!guarded.owns(old)) return own_realloc(old, bytes);
  void* const block = checked_malloc(bytes);
  if (block == nullptr) return nullptr;
  std::memcpy(block, old, std::min(bytes, welkin::data::GuardedHeap::size_of(old)));
  guarded.give_back(old);
  return block;
}

void checked_free(void* block) {
  if (!guarded.owns(block)) return own_free(block);
  guarded.give_back(block);
}

int main(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<size_t>(argc));
  if (words.size() < 3) return 2;
  leave_signals_to_the_parent();
  set_limit(RLIMIT_CORE, 0);
  const std::string_view what(words[1]);
  if (what == "ingest") return serve_ingest(words[2]);
  if (what != "hdf5") return 2;
  check_hdf5(words.subspan(2));
  return 0;
}
