// SPDX-License-Identifier: Apache-2.0
#include "data/check/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "core/text.h"

namespace welkin::data {
namespace {

struct ChildPipe {
  FileDescriptor read_end, write_end;
};

ChildPipe make_child_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

class SpawnActions {
 public:
  SpawnActions(int input, int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
  }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// A child inherits the signals that its parent ignores or blocks. These attributes reset both.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

std::string words_of_status(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status) == 0 ? "" : cat("ended with exit code ", WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  constexpr std::array kByItself{SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGXCPU};
  if (std::ranges::count(kByItself, number) == 0) return "";
  return cat("ended with signal ", number, " (", sigdescr_np(number), ")");
}

}  // namespace

ChildProcess::ChildProcess(const std::filesystem::path& program, std::span<const std::string> arguments) {
  ChildPipe in = make_child_pipe(), out = make_child_pipe();
  if (!in.write_end || !out.write_end) return;
  input_ = std::move(in.write_end);
  output_ = std::move(out.read_end);
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const SpawnActions actions(in.read_end.get(), out.write_end.get());
  const SpawnAttributes attributes;
  pid_t pid = 0;
  if (posix_spawn(&pid, words.front().c_str(), actions.get(), attributes.get(), pointers.data(), environ) == 0) pid_ = pid;
}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  reap();
}

std::string ChildProcess::wait() {
  int status = 0;
  pid_t found = 0;
  while ((found = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return found < 0 ? "" : words_of_status(status);
}

// A process that waits for a lost disk does not even die: it is left to init.
void ChildProcess::reap() const {
  for (int i = 0; i < 100 && waitpid(pid_, nullptr, WNOHANG) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace welkin::data
