// SPDX-License-Identifier: Apache-2.0
#include "launch/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/host.h"
#include "core/text.h"
#include "launch/job_secret.h"
#include "launch/line_pump.h"

namespace welkin::launch {
namespace {

using Clock = std::chrono::steady_clock;
using Variables = std::vector<std::pair<std::string, std::string>>;

constexpr std::array kForwarded{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
constexpr auto kPatienceAfterTerm = std::chrono::milliseconds(2000);
constexpr int kCommExit = static_cast<int>(ExitCode::Comm);

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

// The inherited environment with `changes` in place of what it says.
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

// How a process ended.
struct Ending {
  int code = 0;  // as a shell counts: 128 + number for a signal
  std::string words;
  std::string note;  // what may have been the reason
  bool is_interrupt = false;
};

Ending ending_of(int status, const rusage& usage) {
  if (!WIFSIGNALED(status)) {
    const int code = WEXITSTATUS(status);
    return {code, cat("ended with exit code ", code), "", code == static_cast<int>(ExitCode::Interrupted)};
  }
  const int number = WTERMSIG(status);
  Ending ending{128 + number,
                cat("was ended by signal ", number, " (", sigdescr_np(number) ? sigdescr_np(number) : "unknown", ")"), ""};
  if (number == SIGKILL) {
    ending.note =
        cat(". It held ", format_bytes(static_cast<uint64_t>(usage.ru_maxrss) * 1024),
            " of memory at most: unless somebody ended it, the kernel did for want of memory. Lower --micro_batch_size, "
            "or ask for more memory for the job");
  }
  return ending;
}

struct Worker {
  int64_t rank = 0;
  pid_t pid = 0;
  bool running = true;
  Ending ending;
};

// All processes of the node while they run.
class Crew {
 public:
  explicit Crew(const WorkerPlan& plan) : plan_(plan) {
    const sigset_t set = watched_signals();
    sigprocmask(SIG_BLOCK, &set, &former_);
    signals_ = FileDescriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~Crew() {
    signal_all(SIGKILL);  // only where an error leaves some running
    for (Worker& worker : workers_) {
      if (worker.running) waitpid(worker.pid, nullptr, 0);
    }
    sigprocmask(SIG_SETMASK, &former_, nullptr);
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void start_all() {
    for (int64_t local = 0; local < plan_.num_local; ++local) start(local);
  }

  int wait_all() {
    while (any_running() || any_open()) {
      wait_for_news();
      read_signals();
      reap();
      press_on();
    }
    report();
    return culprit_ ? culprit_->ending.code : 0;
  }

 private:
  void start(int64_t local);
  void wait_for_news();
  void read_signals();
  void reap();
  void press_on();
  void report() const;
  void signal_all(int number) const {
    for (const Worker& worker : workers_) {
      if (worker.running) kill(-worker.pid, number);
    }
  }
  bool any_running() const {
    return std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.running; });
  }
  bool any_open() const {
    return std::any_of(pumps_.begin(), pumps_.end(), [](const LinePump& pump) { return pump.open(); });
  }

  const WorkerPlan& plan_;
  sigset_t former_{};
  FileDescriptor signals_;
  std::vector<Worker> workers_;
  std::vector<LinePump> pumps_;
  std::optional<Worker> culprit_;  // the failure that explains the others
  std::optional<Clock::time_point> failed_at_;
  std::optional<Clock::time_point> drained_by_;  // when pipes that grandchildren hold open are given up
  bool sent_term_ = false, sent_kill_ = false;
};

void Crew::start(int64_t local) {
  const int64_t rank = plan_.node * plan_.num_local + local;
  const bool gets_listener = rank == 0 && plan_.listener >= 0;
  Pipe out = make_pipe(), err = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write_end.get(), 2);
  if (gets_listener) posix_spawn_file_actions_adddup2(&actions, plan_.listener, plan_.listener);  // onto itself: clears O_CLOEXEC
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);  // a group of its own: the terminal's Ctrl-C comes through us, once
  posix_spawnattr_setsigmask(&attributes, &former_);
  std::vector<std::string> arguments = plan_.command;
  std::vector<std::string> variables = merged_environment(worker_environment(plan_, local));
  pid_t pid = 0;
  const int error = posix_spawn(&pid, arguments.front().c_str(), &actions, &attributes, pointers_to(arguments).data(),
                                pointers_to(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw ConfigError(
        "launch",
        cat("a process cannot be started: rank=", rank, ", program=", arguments.front(), ", reason=", std::strerror(error)),
        "Check the limits of this machine (ulimit -u) and its memory");
  }
  workers_.push_back({.rank = rank, .pid = pid, .running = true, .ending = {}});
  const std::string mark = plan_.prefix ? cat("[", rank, "] ") : std::string();
  pumps_.emplace_back(std::move(out.read_end), STDOUT_FILENO, mark);
  pumps_.emplace_back(std::move(err.read_end), STDERR_FILENO, mark);
}

void Crew::wait_for_news() {
  std::vector<pollfd> waits{{.fd = signals_.get(), .events = POLLIN, .revents = 0}};
  for (const LinePump& pump : pumps_)
    waits.push_back({.fd = pump.open() ? pump.descriptor() : -1, .events = POLLIN, .revents = 0});
  // Deadlines are looked at this often, and so are the processes: where this one has other threads, one of these may be told of a
  // process's end in our place.
  constexpr int kTickMs = 100;
  if (poll(waits.data(), waits.size(), kTickMs) <= 0) return;
  for (size_t i = 0; i < pumps_.size(); ++i) {
    if (waits[i + 1].revents != 0) pumps_[i].pump();
  }
}

void Crew::read_signals() {
  signalfd_siginfo news{};
  while (read(signals_.get(), &news, sizeof news) == static_cast<ssize_t>(sizeof news)) {
    if (news.ssi_signo != static_cast<uint32_t>(SIGCHLD)) signal_all(static_cast<int>(news.ssi_signo));
  }
}

void Crew::reap() {
  for (Worker& worker : workers_) {
    int status = 0;
    rusage usage{};
    if (!worker.running || wait4(worker.pid, &status, WNOHANG, &usage) != worker.pid) continue;
    worker.running = false;
    worker.ending = ending_of(status, usage);
    if (worker.ending.code == 0) continue;
    // A rank whose partners went away ends with the code of communication: whoever ended otherwise is the reason.
    const bool explains = !culprit_ || (culprit_->ending.code == kCommExit && worker.ending.code != kCommExit && !sent_term_);
    if (explains) culprit_ = worker;
    if (!failed_at_) failed_at_ = Clock::now();
  }
  if (!any_running() && !drained_by_) drained_by_ = Clock::now() + std::chrono::milliseconds(500);
  if (drained_by_ && Clock::now() > *drained_by_) pumps_.clear();
}

// After a failure: time to report, then SIGTERM, then SIGKILL.
void Crew::press_on() {
  if (!failed_at_ || !any_running()) return;
  const auto since = Clock::now() - *failed_at_;
  if (!sent_term_ && since > plan_.grace) {
    sent_term_ = true;
    signal_all(SIGTERM);
  } else if (!sent_kill_ && since > plan_.grace + kPatienceAfterTerm) {
    sent_kill_ = true;
    signal_all(SIGKILL);
  }
}

void Crew::report() const {
  if (!culprit_ || culprit_->ending.is_interrupt) return;  // which the ranks have said themselves
  std::cerr << "welkin: [launch] rank " << culprit_->rank << " (process " << culprit_->pid << " on " << host_name() << ") "
            << culprit_->ending.words << "; all ranks have been stopped" << culprit_->ending.note << std::endl;
}

}  // namespace

Variables worker_environment(const WorkerPlan& plan, int64_t local_rank) {
  const int64_t rank = plan.node * plan.num_local + local_rank;
  Variables variables = {{"WORLD_SIZE", cat(plan.num_nodes * plan.num_local)},
                         {"RANK", cat(rank)},
                         {"WORLD_RANK", cat(rank)},
                         {"LOCAL_RANK", cat(local_rank)},
                         {"LOCAL_WORLD_SIZE", cat(plan.num_local)},
                         {"GROUP_RANK", cat(plan.node)},
                         {"GROUP_WORLD_SIZE", cat(plan.num_nodes)},
                         {"MASTER_ADDR", plan.master_address},
                         {"MASTER_ADDRESS", plan.master_address},
                         {"MASTER_PORT", cat(plan.master_port)},
                         {"WELKIN_LISTEN_FD", rank == 0 && plan.listener >= 0 ? cat(plan.listener) : std::string()},
                         {"WELKIN_LAUNCH", "1"},
                         {"WELKIN_PARENT", cat(getpid())}};
  variables.insert(variables.end(), plan.environment.begin(), plan.environment.end());
  return variables;
}

int run_workers(WorkerPlan plan) {
  // On several nodes each has a launcher of its own, and the user hands all of them the secret.
  const bool is_given = std::getenv("WELKIN_JOB_SECRET") != nullptr || std::getenv("WELKIN_JOB_SECRET_FILE") != nullptr;
  if (plan.num_nodes == 1 && !is_given) plan.environment.emplace_back("WELKIN_JOB_SECRET", random_token());
  Crew crew(plan);
  crew.start_all();
  return crew.wait_all();
}

}  // namespace welkin::launch
