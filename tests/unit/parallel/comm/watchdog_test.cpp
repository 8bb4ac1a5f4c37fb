// SPDX-License-Identifier: Apache-2.0
// What a rank's watch says about it, on a store in memory.
#include "parallel/comm/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "eventually.h"
#include "memory_store.h"

namespace welkin::parallel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// The text that another thread posts: the first one with this part, or the last one that there is after a time.
std::string await(MemoryStore& kv_store, const std::string& key, const std::string& part) {
  std::string text = "nothing";
  welkin::tests::eventually([&] {
    text = kv_store.read(key).value_or("nothing");
    return text.find(part) != std::string::npos;
  });
  return text;
}

// A device that has passed so many marks; each has a slot of its own.
class FakeMarks : public ops::StreamMarks {
 public:
  bool place(size_t /*slot*/) override {
    if (!is_captured) ++placed;
    return !is_captured;
  }
  bool is_passed(size_t slot) const override { return slot < passed; }

  std::atomic<size_t> passed = 0;
  size_t placed = 0;
  bool is_captured = false;
};

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
  EXPECT_EQ(await(*kv_store, status_key(2), "out has made"), "out has made no call yet\n0");
  const int64_t ticket = recorder->start(a_call("all_reduce"));
  EXPECT_THAT(await(*kv_store, status_key(2), "in all_reduce"), HasSubstr("in all_reduce #7 of group dp [0, 2], Float (3)\n"));
  recorder->finish(ticket, CallState::Done);
  EXPECT_THAT(await(*kv_store, status_key(2), "out makes"),
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
    EXPECT_TRUE(welkin::tests::eventually([&] {
      const std::lock_guard lock(mutex);
      return !said.empty();
    }));
    std::this_thread::sleep_for(50ms);  // in which it could say it again
  }
  ASSERT_EQ(said.size(), 1U);  // once
  EXPECT_THAT(said[0],
              HasSubstr("[parallel] a call hangs beyond its deadline: call=all_gather #7 of group dp [0, 2], Float (3)"));
  EXPECT_THAT(said[0], HasSubstr("rank 0: in barrier #3 of group world [0, 1, 2], () 4.5; rank 1: silent"));
}

TEST(Watchdog, NamesACallThatAGpuDoesNotGetTo) {
  const auto kv_store = std::make_shared<MemoryStore>();
  auto marks = std::make_unique<FakeMarks>();
  std::atomic<size_t>& passed = marks->passed;
  const auto recorder = std::make_shared<FlightRecorder>(std::move(marks));
  for (int i = 0; i < 2; ++i) {
    CallEntry call = a_call("all_reduce");
    call.sequence = 7 + i, call.is_on_gpu = true;
    recorder->finish(recorder->start(call), CallState::Done);
  }
  EXPECT_THAT(recorder->text(), testing::ContainsRegex("^queued, .*all_reduce #7 .*\nqueued, .*all_reduce #8 "));
  EXPECT_EQ(recorder->totals().at(0).calls, 2) << "the host is done with them";
  passed = 1;
  EXPECT_EQ(recorder->oldest_open()->sequence, 8);
  EXPECT_THAT(recorder->text(), testing::ContainsRegex("^done, .*all_reduce #7 .*\nqueued, .*all_reduce #8 "));
  EXPECT_THAT(status_text(*recorder), HasSubstr("in all_reduce #8 of group dp [0, 2], Float (3)\n"));
  std::promise<std::string> said;
  {
    const Watchdog watch(kv_store, recorder,
                         {.rank = 2,
                          .world_size = 3,
                          .interval = 5ms,
                          .hang_after = 1h,
                          .gpu_hang_after = 20ms,
                          .on_hang = [&](const std::string& text) { said.set_value(text); }});
    auto text = said.get_future();
    ASSERT_EQ(text.wait_for(5s), std::future_status::ready);
    EXPECT_THAT(text.get(), HasSubstr("call=all_reduce #8 of group dp [0, 2], Float (3), state=queued, after_s="));
  }
  passed = 2;
  EXPECT_FALSE(recorder->oldest_open());
}

TEST(FlightRecorder, AMarkIsOfTheCallThatHasItsSlot) {
  auto marks = std::make_unique<FakeMarks>();
  FakeMarks& device = *marks;
  FlightRecorder recorder(std::move(marks));
  CallEntry call = a_call("all_gather");
  const int64_t on_host = recorder.start(call);
  recorder.finish(on_host, CallState::Done);
  EXPECT_EQ(device.placed, 0U);
  EXPECT_EQ(recorder.last()->state, CallState::Done);
  call.is_on_gpu = true;
  const int64_t early = recorder.start(call);
  for (size_t i = 0; i < FlightRecorder::kCapacity; ++i) recorder.finish(recorder.start(call), CallState::Done);
  EXPECT_EQ(device.placed, FlightRecorder::kCapacity);
  recorder.finish(early, CallState::Done);
  EXPECT_EQ(device.placed, FlightRecorder::kCapacity) << "its slot is another call's";
  device.is_captured = true;
  recorder.finish(recorder.start(call), CallState::Done);
  EXPECT_EQ(recorder.last()->state, CallState::Done) << "a replay is waited for in a call of its own";
}

}  // namespace
}  // namespace welkin::parallel
