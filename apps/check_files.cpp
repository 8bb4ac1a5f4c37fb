// SPDX-License-Identifier: Apache-2.0
// The executable `welkin-check-files`, which reads files of others in a process of its own, since some damaged files end the
// process of the library that reads them. libwelkin.so runs it; it is no verb of users.
//   welkin-check-files hdf5 FILE...      opens files as a reader would and says where it is (src/data/check/check_child.h)
//   welkin-check-files ingest LIBRARY    serves libwelkin_ingest.so over its pipes (src/data/ingest/source/remote.h)
// No torch, so that it starts in a few milliseconds.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <span>
#include <string_view>

#include "data/check/check_child.h"
#include "data/formats/hdf5/hdf5_walk.h"
#include "data/ingest/source/component.h"
#include "data/ingest/source/remote.h"

namespace {

constexpr rlim_t kSecondsPerStep = 4;  // of CPU: steps take microseconds, and a damaged file can make the library loop
[[maybe_unused]] constexpr rlim_t kMostBytes = rlim_t{16} << 30;  // of addresses; a damaged size makes the library ask for any

void say(char byte) {
  if (write(STDOUT_FILENO, &byte, 1) != 1) _exit(1);  // nobody waits
}

void set_limit(__rlimit_resource_t what, rlim_t soft) {
  rlimit limit{};
  getrlimit(what, &limit);
  limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
  setrlimit(what, &limit);
}

// Signals of a terminal or a scheduler are for the run, which ends this process by itself.
void leave_signals_to_the_parent() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE}) std::signal(number, SIG_IGN);
}

rlim_t used_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<rlim_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
}

// Between two steps. Who waits does so for seconds, so that a byte now and then will do.
void say_progress() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last{};
  const auto now = Clock::now();
  if (now - last < std::chrono::milliseconds(100)) return;
  last = now;
  set_limit(RLIMIT_CPU, used_seconds() + kSecondsPerStep);
  say(welkin::data::kFileProgress);
}

// Ends with the thread that waits for it.
void check_hdf5(std::span<char*> paths) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  set_limit(RLIMIT_AS, kMostBytes);
#endif
  for (const char* path : paths) {
    set_limit(RLIMIT_CPU, used_seconds() + kSecondsPerStep);
    say(welkin::data::kFileBegun);
    welkin::data::walk_hdf5_file(path, say_progress);
    say(welkin::data::kFileFinished);
  }
}

// Ends with its input. What the libraries print is not to come between the answers.
int serve_ingest(const char* library) {
  const int answers = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  try {
    const auto allow_seconds = [](int64_t seconds) { set_limit(RLIMIT_CPU, used_seconds() + static_cast<rlim_t>(seconds)); };
    return welkin::data::ingest::serve_component(welkin::data::ingest::Component(library), STDIN_FILENO, answers, allow_seconds);
  } catch (const std::exception&) {
    return 1;  // who loads the library itself says why
  }
}

}  // namespace

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
