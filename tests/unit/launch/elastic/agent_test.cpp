// SPDX-License-Identifier: Apache-2.0
// The launcher of an elastic job and real processes, over a board in memory.
#include "launch/elastic/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/error.h"
#include "launch/elastic/job_board.h"

namespace welkin::launch {
namespace {

using testing::HasSubstr;

class MemoryBoard final : public JobBoard {
 public:
  void set(const std::string& key, const std::string& text) override { texts_[key] = text; }
  std::optional<std::string> read(const std::string& key) override {
    const auto found = texts_.find(key);
    return found == texts_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::string, std::string> texts_;
};

// It has never said hello, so no round closes over it.
TEST(ElasticAgent, AProcessThatStaysStoppedDoesNotHoldUpSigterm) {
  ElasticPlan plan;
  plan.command = {"/bin/sh", "-c", "trap 'while :; do kill -STOP $$; done' TERM; kill -TERM $PPID; while :; do sleep 0.1; done"};
  plan.limits = {.least = 1, .most = 1};
  plan.grace = std::chrono::milliseconds(300);
  plan.environment = [](int64_t) { return std::vector<std::pair<std::string, std::string>>(); };
  testing::internal::CaptureStderr();
  const auto begin = std::chrono::steady_clock::now();
  const int code = run_elastic(plan, [] { return std::make_unique<MemoryBoard>(); });
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("is stopped (SIGSTOP) and did not go on within 0.3 s: it is ended"));
  EXPECT_EQ(code, 128 + SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

// Of the first of two nodes: the other one's launcher takes its time.
class SlowOther final : public JobBoard {
 public:
  SlowOther() { board_.set(beat_key(1), "1"); }
  void set(const std::string& key, const std::string& text) override {
    if (key == kEndKey) ended_ = std::chrono::steady_clock::now();
    board_.set(key, text);
  }
  std::optional<std::string> read(const std::string& key) override {
    if (key != bye_key(1)) return board_.read(key);
    if (!ended_ || std::chrono::steady_clock::now() - *ended_ < kTime) return {};
    is_heard_ = true;
    return "bye";
  }
  ~SlowOther() override { EXPECT_TRUE(is_heard_); }

  static constexpr auto kTime = std::chrono::milliseconds(700);

 private:
  MemoryBoard board_;
  std::optional<std::chrono::steady_clock::time_point> ended_;
  bool is_heard_ = false;
};

ElasticPlan plan_of(const std::string& script, int64_t node) {
  ElasticPlan plan;
  plan.command = {"/bin/sh", "-c", script};
  plan.num_nodes = 2;
  plan.node = node;
  plan.limits = {.least = 1, .most = 2};
  plan.environment = [](int64_t) { return std::vector<std::pair<std::string, std::string>>(); };
  return plan;
}

// Each launcher counts slots by its own -n: it would wait for processes that nobody starts, or forget some.
TEST(ElasticAgent, NodesThatWereStartedWithOtherNumbersAreToldSo) {
  const auto board_with = [](int64_t node) {
    auto board = std::make_unique<MemoryBoard>();
    board->set(size_key(node), "-n 2 --nnodes 2");
    return board;
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_elastic(plan_of("sleep 20", 0), [&] { return board_with(1); }), 2);
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      HasSubstr("the nodes were started with other numbers: node 0 with -n 1 --nnodes 2, node 1 with -n 2 --nnodes 2. Give "
                "every node the same -n and --nnodes"));
  EXPECT_THAT([&] { run_elastic(plan_of("sleep 20", 1), [&] { return board_with(0); }); },
              testing::ThrowsMessage<ConfigError>(HasSubstr("node 1 with -n 1 --nnodes 2, node 0 with -n 2 --nnodes 2")));
}

TEST(ElasticAgent, TheBoardStaysUntilTheOtherNodesKnowTheEnd) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run_elastic(plan_of("exit 2", 0), [] { return std::make_unique<SlowOther>(); }), 2);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, SlowOther::kTime);
}

// It is gone once it knows that the second node's process is in that state.
class BoardThatGoes final : public JobBoard {
 public:
  BoardThatGoes(Slot::State last, bool& is_missed) : last_(last), is_missed_(is_missed) {}
  void set(const std::string& key, const std::string& text) override {
    check();
    board_.set(key, text);
    if (key == slot_key(1, 0)) is_gone_ = parse_slot(text).value().state == last_;
  }
  std::optional<std::string> read(const std::string& key) override {
    check();
    return board_.read(key);
  }

 private:
  void check() {
    if (!is_gone_) return;
    is_missed_ = true;
    throw CommError("store", "gone", "Do this");
  }

  MemoryBoard board_;
  const Slot::State last_;
  bool& is_missed_;
  bool is_gone_ = false;
};

// Which is no loss for a node that is done.
TEST(ElasticAgent, ALostBoardIsTheEndForANodeThatIsDone) {
  bool is_missed = false;
  const auto run = [&](const std::string& script, Slot::State last) {
    return run_elastic(plan_of(script, 1), [&] { return std::make_unique<BoardThatGoes>(last, is_missed); });
  };
  EXPECT_EQ(run("exit 0", Slot::State::Done), 0);
  EXPECT_TRUE(is_missed);
  EXPECT_THROW(run("exec sleep 60", Slot::State::Running), CommError);
}

// It was sent SIGUSR1 by this launcher, before anything of it could handle that: another start would not know of it.
TEST(ElasticAgent, WhatASignalToTheJobHasEndedIsNotStartedAgain) {
  ElasticPlan plan = plan_of("trap 'exit 9' USR1; kill -USR1 $PPID; sleep 0.3; exit 9", 0);
  plan.num_nodes = 1;
  plan.limits = {.least = 1, .most = 1};
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_elastic(plan, [] { return std::make_unique<MemoryBoard>(); }), 9);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::Not(HasSubstr("started again")));
}

}  // namespace
}  // namespace welkin::launch
