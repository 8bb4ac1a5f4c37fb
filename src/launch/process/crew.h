// SPDX-License-Identifier: Apache-2.0
// Processes of a node: started by exec, never by fork alone, watched from one thread. Their output is read line by line and
// marked; signals are passed on. The owner decides what an end means.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/file_descriptor.h"
#include "launch/process/line_pump.h"

namespace welkin::launch {

struct WorkerStart {
  int64_t rank = 0;                                              // for the owner and messages
  std::vector<std::string> command;                              // program and arguments
  std::vector<std::pair<std::string, std::string>> environment;  // replaces what is inherited
  std::string mark;                                              // in front of its lines; empty: none
  int listener = -1;                                             // a descriptor that it inherits; -1: none
};

// How a process ended.
struct Ending {
  int code = 0;  // as a shell counts: 128 + number for a signal
  std::string words;
  std::string note;  // the possible reason
  bool is_interrupt = false;
  bool is_signal = false;
};

struct Worker {
  int64_t rank = 0;
  pid_t pid = 0;
  bool running = true;
  Ending ending;
};

class Crew {
 public:
  // Blocks SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGCHLD for the calling thread while it lives.
  Crew();
  ~Crew();  // ends those that still run
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Returns the process's number. It begins with SIGUSR1 blocked, so that the signal waits for the process's own handler
  // (core/process/signals.h), which is installed after libraries load. ConfigError when the program cannot be started.
  pid_t start(const WorkerStart& worker);
  // Waits until a process ends, prints something, or a signal comes; at most a tenth of a second.
  void wait_for_news();
  // Signals that have come; it sends them to the processes too. SIGINT and SIGTERM must also end processes that are stopped
  // (SIGSTOP), so these are continued.
  std::vector<int> pass_on_signals();
  // The processes that have ended since the last call.
  std::vector<Worker> reap();

  void signal_all(int number) const;
  // Called repeatedly after a failure at that time. Running processes have `grace` to report, then get SIGTERM, then SIGKILL.
  void press_on(std::chrono::steady_clock::time_point failed_at, std::chrono::milliseconds grace);
  bool has_sent_term() const { return sent_term_; }
  void signal(pid_t pid, int number) const;  // of one that runs
  bool any_running() const;
  // True if a running process is stopped by a signal (SIGSTOP, SIGTSTP) now. One that a debugger holds is not.
  bool is_stopped(pid_t pid) const;
  // True if a running process or an open pipe is left. Pipes that grandchildren hold open are given up half a
  // second after the last process.
  bool is_busy();

 private:
  sigset_t former_{};
  FileDescriptor signals_;
  std::vector<Worker> workers_;
  std::vector<LinePump> pumps_;
  std::optional<std::chrono::steady_clock::time_point> drained_by_;
  bool sent_term_ = false, sent_kill_ = false;  // by press_on()
};

}  // namespace welkin::launch
