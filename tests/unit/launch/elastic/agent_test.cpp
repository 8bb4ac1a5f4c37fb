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

}  // namespace
}  // namespace welkin::launch
