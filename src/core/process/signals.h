// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGUSR1 of schedulers, and SIGHUP of a terminal that closes. The first signal sets a flag that the trainer
// polls between steps. The second ends the process at once, with exit code 130.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <optional>

#include "core/process/signal_stack.h"

namespace welkin {

// Installs the handlers while it lives and puts the former ones back; their signals are unblocked from then on. At most one
// lives at a time; the code that runs the verb makes it and passes it down. A signal that repeats within 100 ms counts once:
// the terminal and a launcher often both deliver the same Ctrl-C. Handlers run on a stack of their own in the thread that makes
// the watch, which is the one that computes, and destroys it.
class InterruptWatch {
 public:
  // Requeue: SIGUSR1 alone, with which a batch system announces the end of a job. The others end the process as without a
  // watch, until watch_all(). None: all stay as they are; a program that embeds the trainer calls request().
  enum class Watched { All, Requeue, None };
  explicit InterruptWatch(Watched watched = Watched::All);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  // Watches all of them from now on. Signals that Requeue has seen stay.
  void watch_all();

  // Acts as if this signal had arrived. Any thread.
  void request(int number);

  bool requested() const { return signal_number() != 0; }
  int signal_number() const;  // 0 before the first

 private:
  static constexpr std::array kWatched{SIGINT, SIGTERM, SIGUSR1, SIGHUP};
  void watch(size_t index);

  std::optional<SignalStack> stack_;                                       // none without handlers
  std::array<std::optional<struct sigaction>, kWatched.size()> former_{};  // of those that are watched
};

}  // namespace welkin
