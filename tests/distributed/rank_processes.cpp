// SPDX-License-Identifier: Apache-2.0
#include "rank_processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/text.h"

namespace welkin::parallel {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct RegisteredBody {
  RankBody body;
  int64_t deadline_s = 0;
};

std::map<std::string, RegisteredBody>& bodies() {
  static std::map<std::string, RegisteredBody> all;
  return all;
}

struct RankJob {
  std::string body;
  int64_t rank = 0, world_size = 0, port = 0, limit_s = 0;
};

constexpr int kJobSocket = 3;  // of a child: jobs come, verdicts go
constexpr size_t kMostOfJob = 1 << 15;

// Ends the process, saying where it hangs, unless it is destroyed before.
class RankWatchdog {
 public:
  RankWatchdog(const FlightRecorder& recorder, std::chrono::seconds limit)
      : thread_([this, &recorder, limit] {
          std::unique_lock lock(mutex_);
          if (done_.wait_for(lock, limit, [this] { return over_; })) return;
          std::fprintf(stderr, "hangs; its collectives:\n%s", recorder.text().c_str());
          _exit(86);
        }) {}
  ~RankWatchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    done_.notify_all();
    thread_.join();
  }
  RankWatchdog(const RankWatchdog&) = delete;
  RankWatchdog& operator=(const RankWatchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool over_ = false;
  std::thread thread_;
};

// The next job of this child and, for rank 0, the listening socket; false when the parent has ended.
bool next_job(RankJob& job, int& listener) {
  std::vector<char> text(kMostOfJob);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = recvmsg(kJobSocket, &message, MSG_CMSG_CLOEXEC);
  if (count <= 0) return false;
  listener = -1;
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) std::memcpy(&listener, CMSG_DATA(header), sizeof(int));
  std::istringstream in(std::string(text.data(), static_cast<size_t>(count)));
  in >> job.body >> job.rank >> job.world_size >> job.port >> job.limit_s;
  if (!in) throw std::runtime_error("a job that is none");
  for (std::string line; std::getline(in, line);) {
    if (const size_t sign = line.find('='); sign != std::string::npos) {
      setenv(line.substr(0, sign).c_str(), line.c_str() + sign + 1, 1);
    }
  }
  return true;
}

void run_job(const RankJob& job, int listener) {
  const RegisteredBody& body = bodies().at(job.body);
  const auto connection = Connection::open({.rank = job.rank,
                                            .world_size = job.world_size,
                                            .port = static_cast<uint16_t>(job.port),
                                            .listen_fd = listener,
                                            .deadline = std::chrono::seconds(body.deadline_s)});
  const RankWatchdog watchdog(connection->recorder(), std::chrono::seconds(job.limit_s - 5));
  body.body(*connection);
  connection->close();
}

// The child's part: a process that failed once takes no other job.
TEST(RankChild, DISABLED_Run) {
  RankJob job;
  for (int listener = -1; !HasFailure() && next_job(job, listener);) {
    run_job(job, listener);
    if (!HasFailure()) {
      ASSERT_EQ(send(kJobSocket, "0", 1, MSG_NOSIGNAL), 1);
    }
  }
}

// A process of this program that takes jobs, one after the other: loading torch for each would be 0.3 s of CPU time.
class RankProcess {
 public:
  explicit RankProcess(std::string output) : output_(std::move(output)) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) throw std::runtime_error("no socket pair");
    socket_ = ends[0];
    std::string threads = "OMP_NUM_THREADS=1";
    std::vector<std::string> words{"/proc/self/exe", "--gtest_also_run_disabled_tests", "--gtest_filter=RankChild.DISABLED_Run"};
    std::vector<char*> arguments, environment{threads.data()};
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const auto is_of_parent = [](const std::string& entry) {  // which cases it runs is no matter of its children
      return entry.starts_with("OMP_NUM_THREADS=") || entry.starts_with("GTEST_");
    };
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (!is_of_parent(*entry)) environment.push_back(*entry);
    }
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // Appended to, so that each job begins with an empty file.
    posix_spawn_file_actions_addopen(&actions, 1, output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawn_file_actions_adddup2(&actions, ends[1], kJobSocket);
    EXPECT_EQ(posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments.data(), environment.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
  }

  ~RankProcess() {
    end();
    close(socket_);
    fs::remove(output_);
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  // With the variables of this project as they are now. `listener` goes to rank 0.
  void give(const RankJob& job, int listener) {
    EXPECT_EQ(truncate(output_.c_str(), 0), 0);
    std::string text = cat(job.body, " ", job.rank, " ", job.world_size, " ", job.port, " ", job.limit_s, "\n");
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (std::string_view(*entry).starts_with("WELKIN_")) text += cat(*entry, "\n");
    }
    ASSERT_LT(text.size(), kMostOfJob);
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (job.rank == 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &listener, sizeof(int));
    }
    EXPECT_EQ(sendmsg(socket_, &message, MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }

  // Waits until its job is done or it has ended: the exit code (128 + number for a signal), 0 for a job that passed, -1 when
  // `until` came first.
  int verdict(std::chrono::steady_clock::time_point until) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd one{socket_, POLLIN, 0};
    if (poll(&one, 1, static_cast<int>(std::max<int64_t>(left, 0))) <= 0) {
      kill(pid_, SIGKILL);
      waitpid(std::exchange(pid_, -1), nullptr, 0);
      return -1;
    }
    char passed = 0;
    return recv(socket_, &passed, 1, 0) == 1 ? 0 : exit_code();
  }

  // It has no further jobs: its exit code, 0 where it has ended before.
  int end() {
    if (has_ended()) return 0;
    shutdown(socket_, SHUT_WR);
    return verdict(std::chrono::steady_clock::now() + 30s);
  }

  [[nodiscard]] bool has_ended() const { return pid_ <= 0; }
  [[nodiscard]] const std::string& output() const { return output_; }

 private:
  int exit_code() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string output_;
  int socket_ = -1;
  pid_t pid_ = -1;
};

std::string whole_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// The processes of all tests of this program. One that fails as it ends fails the program.
class RankProcesses : public testing::Environment {
 public:
  RankProcess& of_rank(int64_t rank) {
    while (std::ssize(processes_) <= rank) {
      const fs::path output = fs::path(testing::TempDir()) / cat("rank_", getpid(), "_", started_++);
      processes_.push_back(std::make_unique<RankProcess>(output.string()));
    }
    return *processes_[static_cast<size_t>(rank)];
  }
  void drop_ended() {
    std::erase_if(processes_, [](const auto& process) { return process->has_ended(); });
  }
  void TearDown() override {
    for (const auto& process : processes_)
      EXPECT_EQ(process->end(), 0) << "a rank as it ends:\n" << whole_text(process->output());
    processes_.clear();
  }

 private:
  std::vector<std::unique_ptr<RankProcess>> processes_;
  int64_t started_ = 0;
};

// Owned by GoogleTest.
RankProcesses& rank_processes() {
  static auto* const all = new RankProcesses;
  return *all;
}
const testing::Environment* const kRankProcesses = testing::AddGlobalTestEnvironment(&rank_processes());

}  // namespace

RankTest::RankTest(const char* name, RankBody body, int64_t deadline_s) { bodies()[name] = {std::move(body), deadline_s}; }

std::string rank_scratch_folder() {
  const char* given = std::getenv("WELKIN_RANK_SCRATCH");
  return given != nullptr ? given : (fs::path(testing::TempDir()) / cat("ranks_", getpid())).string();
}

void run_on_ranks(const std::string& body, int64_t world_size, int64_t limit_s) {
  const std::string folder = rank_scratch_folder();
  fs::create_directories(folder);
  setenv("WELKIN_RANK_SCRATCH", folder.c_str(), 1);
  const ListeningSocket listener = listen_on("127.0.0.1");
  RankJob job{.body = body, .rank = 0, .world_size = world_size, .port = listener.port, .limit_s = limit_s};
  for (; job.rank < world_size; ++job.rank) rank_processes().of_rank(job.rank).give(job, listener.fd);
  close(listener.fd);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(limit_s);
  for (int64_t rank = 0; rank < world_size; ++rank) {
    RankProcess& process = rank_processes().of_rank(rank);
    EXPECT_EQ(process.verdict(until), 0) << "rank " << rank << " of " << world_size << ":\n" << whole_text(process.output());
  }
  rank_processes().drop_ended();
  fs::remove_all(folder);
  unsetenv("WELKIN_RANK_SCRATCH");
}

}  // namespace welkin::parallel
