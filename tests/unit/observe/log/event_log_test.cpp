// SPDX-License-Identifier: Apache-2.0
#include "observe/log/event_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <future>
#include <limits>

#include "core/file.h"
#include "core/file_descriptor.h"
#include "observe/log/run_status.h"
#include "temporary_folder.h"

namespace welkin::observe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(EventLog, ALineIsOneObject) {
  EXPECT_EQ(
      event_line(
          1'700'000'000'250, "spike", 12, 3,
          {{"loss", std::nan("")}, {"norm", 0.5}, {"samples", std::vector<int64_t>{4, 2}}, {"said", std::string("a\n\"b\"")}}),
      "{\"time\":\"2023-11-14T22:13:20.250Z\",\"event\":\"spike\",\"step\":12,\"rank\":3,\"loss\":\"nan\",\"norm\":0.5,"
      "\"samples\":[4,2],\"said\":\"a\\n\\\"b\\\"\"}\n");
}

TEST(EventLog, LinesOfTwoProcessesAreAppended) {
  const TemporaryFolder folder;
  EventLog first(folder.path() / "events.jsonl", 0), second(folder.path() / "events.jsonl", 1);
  EXPECT_TRUE(first.add("started", 0));
  EXPECT_TRUE(second.add("fault", 2));
  EXPECT_TRUE(first.add("fault", 3));
  EXPECT_EQ(first.counts(), (std::map<std::string, int64_t>{{"started", 1}, {"fault", 1}}));
  const std::string text = read_file(folder.path() / "events.jsonl", 1 << 16);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(EventLog, WhatAKilledProcessHasLeftOfALineStandsAlone) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "events.jsonl";
  write_file_atomically(path, "{\"time\":\"2023-11");
  EXPECT_TRUE(EventLog(path, 0).add("started", 0));
  const std::string text = read_file(path, 1 << 16);
  EXPECT_THAT(text, ::testing::StartsWith("{\"time\":\"2023-11\n{\"time\":"));
  EXPECT_THAT(text, ::testing::EndsWith("}\n"));
}

// The limit of a file's size refuses what a full disk does: the end of a line.
TEST(EventLog, AFullDiskLeavesNoPartOfALine) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "events.jsonl";
  EventLog log(path, 0);
  EXPECT_TRUE(log.add("started", 0));
  const std::string before = read_file(path, 1 << 16);
  rlimit former{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &former), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = before.size() + 10, .rlim_max = former.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_FALSE(log.add("fault", 1));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &former), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(path, 1 << 16), before);
  EXPECT_TRUE(log.add("fault", 2));
  EXPECT_THAT(read_file(path, 1 << 16), ::testing::StartsWith(before + "{\"time\":"));
}

// On a network file system lines of two hosts would else be written over each other. A holder that never lets go is not waited
// for: the run matters more than a line.
TEST(EventLog, WaitsForAnotherWriterAndNotForEver) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "events.jsonl";
  EventLog log(path, 0);
  EXPECT_TRUE(log.add("started", 0));
  const std::string before = read_file(path, 1 << 16);
  const FileDescriptor other = open_file(path, O_RDWR);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  ASSERT_EQ(fcntl(other.get(), F_OFD_SETLK, &whole), 0);
  auto added = std::async(std::launch::async, [&] { return log.add("fault", 1); });
  EXPECT_EQ(added.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  EXPECT_EQ(read_file(path, 1 << 16), before);
  EXPECT_TRUE(added.get());
  EXPECT_THAT(read_file(path, 1 << 16), HasSubstr("\"event\":\"fault\""));
}

TEST(EventLog, AFolderThatIsGoneLosesALineAndNoRun) {
  EventLog log("/no/such/folder/events.jsonl", 0);
  EXPECT_FALSE(log.add("started", 0));
}

RunStatus some_status() {
  return {.run = "/logs/a\"b",
          .host = "n1",
          .process = 7,
          .ranks = 2,
          .step = 5,
          .total_steps = 10,
          .epoch = 1,
          .loss = 0.25,
          .learning_rate = 1e-3,
          .samples_per_s = 12,
          .seconds_left = std::numeric_limits<double>::infinity(),
          .last_checkpoint = "",
          .checkpoint_interval = 37,
          .expected_goodput = 0.75,
          .events = {{"spike", 2}},
          .error = "",
          .milliseconds = 1'700'000'000'250};
}

TEST(RunStatus, IsJsonWithNullsForWhatIsNotKnown) {
  const std::string json = status_json(some_status());
  EXPECT_THAT(json, HasSubstr("\"state\": \"running\""));
  EXPECT_THAT(json, HasSubstr("\"loss\": 0.25"));
  EXPECT_THAT(json, HasSubstr("\"seconds_left\": null"));
  EXPECT_THAT(json, HasSubstr("\"last_checkpoint\": null"));
  EXPECT_THAT(json, HasSubstr("\"spike\": 2"));
  EXPECT_THAT(json, HasSubstr("\"checkpoint_interval\": 37,\n  \"expected_goodput\": 0.75"));
}

TEST(RunStatus, IsPrometheusText) {
  const std::string text = status_prometheus(some_status());
  EXPECT_THAT(text, HasSubstr("# TYPE welkin_step gauge\nwelkin_step{run=\"/logs/a\\\"b\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("welkin_seconds_left{run=\"/logs/a\\\"b\"} +Inf\n"));
  EXPECT_THAT(text, HasSubstr("welkin_updated_seconds{run=\"/logs/a\\\"b\"} 1700000000.25\n"));
  EXPECT_THAT(text, HasSubstr("welkin_events_total{run=\"/logs/a\\\"b\",event=\"spike\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("welkin_expected_goodput{run=\"/logs/a\\\"b\"} 0.75\n"));
  EXPECT_THAT(text, HasSubstr("} 1\n"));
}

TEST(RunStatus, BothFilesAreReplaced) {
  const TemporaryFolder folder;
  RunStatus status = some_status();
  write_status(folder.path(), status);
  status.state = "finished";
  write_status(folder.path(), status);
  EXPECT_THAT(read_file(folder.path() / "status.json", 1 << 16), HasSubstr("\"state\": \"finished\""));
  EXPECT_THAT(read_file(folder.path() / "metrics.prom", 1 << 16), HasSubstr("welkin_up{run=\"/logs/a\\\"b\"} 0\n"));
}

}  // namespace
}  // namespace welkin::observe
