// SPDX-License-Identifier: Apache-2.0
// What a rank's watch says about it, on a store in memory.
#include "parallel/comm/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "memory_store.h"

namespace welkin::parallel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Waits for what another thread posts, five seconds at the most.
std::string await(MemoryStore& kv_store, const std::string& key) {
  for (int i = 0; i < 1000; ++i) {
    if (const auto text = kv_store.read(key)) return *text;
    std::this_thread::sleep_for(5ms);
  }
  return "nothing";
}

CallEntry a_call(const char* name) {
  return {.sequence = 7, .name = name, .shape = "Float (3)", .group = "dp [0, 2]", .started = {}};
}

TEST(Watchdog, ReasonsAreForPeople) {
  EXPECT_EQ(reason_of("[/pytorch/third_party/gloo/pair.cc:547] Connection closed by peer\nframe #0"),
            "Connection closed by peer");
  EXPECT_EQ(reason_of("[host]:29500 refused"), "[host]:29500 refused");
  EXPECT_EQ(reason_of("[/unfinished"), "[/unfinished");
}

TEST(Watchdog, TellsWaitingFromComputingWhenThereIsAnAlarm) {
  const auto kv_store = std::make_shared<MemoryStore>();
  const auto recorder = std::make_shared<FlightRecorder>();
  const Watchdog watch(kv_store, recorder, {.rank = 2, .world_size = 3, .interval = 5ms});
  std::this_thread::sleep_for(30ms);
  EXPECT_FALSE(kv_store->read(status_key(2)));  // without an alarm nothing is written
  kv_store->set(kAlarmKey, "0");
  EXPECT_EQ(await(*kv_store, status_key(2)), "out has made no call yet\n0");
  const int64_t ticket = recorder->start(a_call("all_reduce"));
  std::this_thread::sleep_for(50ms);
  EXPECT_THAT(await(*kv_store, status_key(2)), HasSubstr("in all_reduce #7 of group dp [0, 2], Float (3)\n"));
  recorder->finish(ticket, CallState::Done);
  std::this_thread::sleep_for(50ms);
  EXPECT_THAT(await(*kv_store, status_key(2)),
              HasSubstr("out makes no call; its last, all_reduce #7 of group dp [0, 2], Float (3), ended\n"));
}

TEST(Watchdog, NamesACallThatIsNotEndedAtItsDeadline) {
  const auto kv_store = std::make_shared<MemoryStore>();
  const auto recorder = std::make_shared<FlightRecorder>();
  kv_store->set(status_key(0), "in barrier #3 of group world [0, 1, 2], ()\n4.5");
  std::mutex mutex;
  std::vector<std::string> said;
  recorder->start(a_call("all_gather"));
  {
    const Watchdog watch(
        kv_store, recorder,
        {.rank = 2, .world_size = 3, .interval = 5ms, .hang_after = 20ms, .on_hang = [&](const std::string& text) {
           const std::lock_guard lock(mutex);
           said.push_back(text);
         }});
    for (int i = 0; i < 400; ++i) {
      std::this_thread::sleep_for(5ms);
      const std::lock_guard lock(mutex);
      if (!said.empty()) break;
    }
    std::this_thread::sleep_for(50ms);
  }
  ASSERT_EQ(said.size(), 1U);  // once
  EXPECT_THAT(said[0],
              HasSubstr("[parallel] a call hangs beyond its deadline: call=all_gather #7 of group dp [0, 2], Float (3)"));
  EXPECT_THAT(said[0], HasSubstr("rank 0: in barrier #3 of group world [0, 1, 2], () 4.5; rank 1: silent"));
}

}  // namespace
}  // namespace welkin::parallel
