// SPDX-License-Identifier: Apache-2.0
#include "rank_processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
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

// The child's part.
TEST(RankChild, DISABLED_Run) {
  std::istringstream text(std::getenv("WELKIN_RANK_JOB"));
  RankJob job;
  int listener = -1;
  text >> job.body >> job.rank >> job.world_size >> job.port >> listener >> job.limit_s;
  ASSERT_TRUE(text);
  const RegisteredBody& body = bodies().at(job.body);
  const auto connection = Connection::open({.rank = job.rank,
                                            .world_size = job.world_size,
                                            .port = static_cast<uint16_t>(job.port),
                                            .listen_fd = job.rank == 0 ? listener : -1,
                                            .deadline = std::chrono::seconds(body.deadline_s)});
  const RankWatchdog watchdog(connection->recorder(), std::chrono::seconds(job.limit_s - 5));
  body.body(*connection);
  connection->close();
}

pid_t spawn_rank(const RankJob& job, int listener, const std::string& output) {
  std::string variable =
      cat("WELKIN_RANK_JOB=", job.body, " ", job.rank, " ", job.world_size, " ", job.port, " ", listener, " ", job.limit_s);
  std::string threads = "OMP_NUM_THREADS=1";
  std::vector<std::string> words{"/proc/self/exe", "--gtest_also_run_disabled_tests", "--gtest_filter=RankChild.DISABLED_Run"};
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> environment{variable.data(), threads.data()};
  const auto is_of_parent = [](const std::string& entry) {  // which cases it runs is no matter of its children
    return entry.starts_with("OMP_NUM_THREADS=") || entry.starts_with("GTEST_");
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_of_parent(*entry)) environment.push_back(*entry);
  }
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environment.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

// -1 while it runs, else its exit code (128 + number for a signal).
int poll_exit(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, WNOHANG) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string whole_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

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
  fcntl(listener.fd, F_SETFD, 0);  // rank 0 inherits it
  RankJob job{.body = body, .rank = 0, .world_size = world_size, .port = listener.port, .limit_s = limit_s};
  std::vector<pid_t> children;
  for (; job.rank < world_size; ++job.rank) {
    children.push_back(spawn_rank(job, listener.fd, cat(folder, "/output", job.rank)));
  }
  close(listener.fd);
  std::vector<int> exits(children.size(), -1);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(limit_s);
  for (size_t left = children.size(); left > 0 && std::chrono::steady_clock::now() < until;) {
    for (size_t i = 0; i < children.size(); ++i) {
      if (exits[i] < 0 && (exits[i] = poll_exit(children[i])) >= 0) --left;
    }
    std::this_thread::sleep_for(5ms);
  }
  for (size_t i = 0; i < children.size(); ++i) {
    if (exits[i] < 0) {
      kill(children[i], SIGKILL);
      waitpid(children[i], nullptr, 0);
    }
    EXPECT_EQ(exits[i], 0) << "rank " << i << " of " << world_size << ":\n" << whole_text(cat(folder, "/output", i));
  }
  fs::remove_all(folder);
  unsetenv("WELKIN_RANK_SCRATCH");
}

}  // namespace welkin::parallel
