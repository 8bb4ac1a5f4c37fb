// SPDX-License-Identifier: Apache-2.0
#include "launch/process/crew.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>

#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

using Clock = std::chrono::steady_clock;
using Variables = std::vector<std::pair<std::string, std::string>>;

constexpr std::array kForwarded{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

struct Pipe {
  FileDescriptor read_end, write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw CommError("launch", cat("cannot make a pipe: reason=", std::strerror(errno)),
                    "Raise the limit of open files (ulimit -n)");
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// The inherited environment, in which `changes` replace variables.
std::vector<std::string> merged_environment(const Variables& changes) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) all[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : changes) all[name] = value;
  std::vector<std::string> rows;
  for (const auto& [name, value] : all) rows.push_back(cat(name, "=", value));
  return rows;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kForwarded) sigaddset(&set, number);
  sigaddset(&set, SIGCHLD);
  return set;
}

Ending ending_of(int status, const rusage& usage) {
  if (!WIFSIGNALED(status)) {
    const int code = WEXITSTATUS(status);
    return {code, cat("ended with exit code ", code), "", code == static_cast<int>(ExitCode::Interrupted)};
  }
  const int number = WTERMSIG(status);
  Ending ending{128 + number,
                cat("was ended by signal ", number, " (", sigdescr_np(number) ? sigdescr_np(number) : "unknown", ")"), ""};
  ending.is_signal = true;
  if (number == SIGKILL) {
    ending.note =
        cat(". It held ", format_bytes(static_cast<uint64_t>(usage.ru_maxrss) * 1024),
            " of memory at most: unless somebody ended it, the kernel did for want of memory. Lower --micro_batch_size, "
            "or ask for more memory for the job");
  }
  return ending;
}

}  // namespace

Crew::Crew() {
  const sigset_t set = watched_signals();
  sigprocmask(SIG_BLOCK, &set, &former_);
  signals_ = FileDescriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Crew::~Crew() {
  signal_all(SIGKILL);  // only where an error leaves some running
  for (const Worker& worker : workers_) {
    if (worker.running) waitpid(worker.pid, nullptr, 0);
  }
  sigprocmask(SIG_SETMASK, &former_, nullptr);
}

pid_t Crew::start(const WorkerStart& worker) {
  Pipe out = make_pipe(), err = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write_end.get(), 2);
  if (worker.listener >= 0) {
    posix_spawn_file_actions_adddup2(&actions, worker.listener, worker.listener);  // onto itself: clears O_CLOEXEC
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);  // a group of its own: the terminal's Ctrl-C comes through us, once
  sigset_t blocked = former_;
  sigaddset(&blocked, SIGUSR1);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  std::vector<std::string> arguments = worker.command;
  std::vector<std::string> variables = merged_environment(worker.environment);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, arguments.front().c_str(), &actions, &attributes, pointers_to(arguments).data(),
                                pointers_to(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw ConfigError("launch",
                      cat("a process cannot be started: rank=", worker.rank, ", program=", arguments.front(),
                          ", reason=", std::strerror(error)),
                      "Check the limits of this machine (ulimit -u) and its memory");
  }
  workers_.push_back({.rank = worker.rank, .pid = pid, .running = true, .ending = {}});
  pumps_.emplace_back(std::move(out.read_end), STDOUT_FILENO, worker.mark);
  pumps_.emplace_back(std::move(err.read_end), STDERR_FILENO, worker.mark);
  drained_by_.reset();
  return pid;
}

void Crew::wait_for_news() {
  std::vector<pollfd> waits{{.fd = signals_.get(), .events = POLLIN, .revents = 0}};
  std::erase_if(pumps_, [](const LinePump& pump) { return !pump.open(); });
  for (const LinePump& pump : pumps_) waits.push_back({.fd = pump.descriptor(), .events = POLLIN, .revents = 0});
  // Deadlines and processes are polled this often. Where this process has other threads, one of these may get the signal of a
  // process's end in our place.
  constexpr int kTickMs = 100;
  if (poll(waits.data(), waits.size(), kTickMs) <= 0) return;
  for (size_t i = 0; i < pumps_.size(); ++i) {
    if (waits[i + 1].revents != 0) pumps_[i].pump();
  }
}

std::vector<int> Crew::pass_on_signals() {
  std::vector<int> numbers;
  signalfd_siginfo news{};
  while (read(signals_.get(), &news, sizeof news) == static_cast<ssize_t>(sizeof news)) {
    if (news.ssi_signo == static_cast<uint32_t>(SIGCHLD)) continue;
    numbers.push_back(static_cast<int>(news.ssi_signo));
    signal_all(numbers.back());
    if (numbers.back() == SIGINT || numbers.back() == SIGTERM) signal_all(SIGCONT);
  }
  return numbers;
}

std::vector<Worker> Crew::reap() {
  std::vector<Worker> ended;
  for (Worker& worker : workers_) {
    int status = 0;
    rusage usage{};
    if (!worker.running || wait4(worker.pid, &status, WNOHANG, &usage) != worker.pid) continue;
    worker.running = false;
    worker.ending = ending_of(status, usage);
    ended.push_back(worker);
  }
  return ended;
}

void Crew::signal_all(int number) const {
  for (const Worker& worker : workers_) {
    if (worker.running) kill(-worker.pid, number);
  }
}

void Crew::press_on(Clock::time_point failed_at, std::chrono::milliseconds grace) {
  constexpr auto kPatienceAfterTerm = std::chrono::milliseconds(2000);
  if (!any_running()) return;
  const auto since = Clock::now() - failed_at;
  if (!sent_term_ && since > grace) {
    sent_term_ = true;
    signal_all(SIGTERM);
  } else if (!sent_kill_ && since > grace + kPatienceAfterTerm) {
    sent_kill_ = true;
    signal_all(SIGKILL);
  }
}

void Crew::signal(pid_t pid, int number) const {
  for (const Worker& worker : workers_) {
    if (worker.running && worker.pid == pid) kill(-pid, number);
  }
}

bool Crew::any_running() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.running; });
}

bool Crew::is_stopped(pid_t pid) const {
  siginfo_t news{};
  constexpr int kLookOnly = WSTOPPED | WNOHANG | WNOWAIT;  // the news stays, so each call is told the present state
  return waitid(P_PID, static_cast<id_t>(pid), &news, kLookOnly) == 0 && news.si_pid == pid;
}

bool Crew::is_busy() {
  if (any_running()) return true;
  if (!drained_by_) drained_by_ = Clock::now() + std::chrono::milliseconds(500);
  if (Clock::now() > *drained_by_) pumps_.clear();
  return std::any_of(pumps_.begin(), pumps_.end(), [](const LinePump& pump) { return pump.open(); });
}

}  // namespace welkin::launch
