// SPDX-License-Identifier: Apache-2.0
// A whole run that is recorded: its spans, its trace, its timeline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tiny_run.h"

namespace welkin::train {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NameRecorder : public observe::SpanSink {
 public:
  void begin(std::string_view name) noexcept override {
    const std::lock_guard lock(mutex_);
    if (name != "read") names.emplace_back(name);
  }
  void end(std::string_view, observe::SpanClock::time_point) noexcept override {}
  std::vector<std::string> names;

 private:
  std::mutex mutex_;
};

// Two epochs of four steps, in a log folder of their own.
struct RecordedRun {
  explicit RecordedRun(const ProfileOptions& options, observe::SpanSink* recorder = nullptr, bool manual = false) {
    config::RunConfig config = tiny_config(folder.path());
    config.loop.num_iters = 8;
    config.loop.num_epochs = 0;
    config.data.num_data_workers = 2;
    config.switches.enable_manual_profiling = manual;
    const TinyData data{.samples = 16};
    outcome = run_tiny(config, data, {.profile = options, .span_recorder = recorder});
  }
  std::filesystem::path file(const std::string& ending) const {
    for (const auto& entry : std::filesystem::directory_iterator(outcome.run.folder / "profile")) {
      if (entry.path().string().ends_with(ending)) return entry.path();
    }
    return {};
  }
  ScratchFolder folder;
  TinyOutcome outcome;
};

// What NVIDIA's tools would be told on a GPU.
TEST(ProfiledRun, HasTheTutorialsRanges) {
  NameRecorder recorder;
  const RecordedRun run({}, &recorder);
  ASSERT_GE(recorder.names.size(), 12U);
  const std::vector<std::string> first(recorder.names.begin(), recorder.names.begin() + 7);
  EXPECT_THAT(first, ElementsAre("step 0", "fetch", "data copy in 0", "forward", "backward", "reduce", "optimizer"));
  EXPECT_EQ(std::ranges::count(recorder.names, "step 3"), 2) << "the number is that within the epoch";
  EXPECT_EQ(std::ranges::count(recorder.names, "data copy in 3"), 2);
  EXPECT_EQ(std::ranges::count(recorder.names, "step 4"), 0);
  EXPECT_FALSE(std::filesystem::exists(run.outcome.run.folder / "profile"));
}

// benchy's own ranges: a trial, its steps, and in each the fetching of its data before the work.
TEST(ProfiledRun, HasBenchysRanges) {
  NameRecorder recorder;
  const ScratchFolder folder;
  config::RunConfig config = tiny_config(folder.path());
  config.loop.num_iters = 8;
  config.loop.num_epochs = 0;
  config.switches.enable_benchy = true;
  const TinyData data{.samples = 16};
  run_tiny(config, data, {.profile = {}, .span_recorder = &recorder});  // two epochs: a trial of SYNTHETIC each
  const std::vector<std::string> first(recorder.names.begin(), recorder.names.begin() + 4);
  EXPECT_THAT(first,
              ElementsAre("BENCHY::BenchmarkIterator::IO_WARMUP_0", "BENCHY::BenchmarkIterator::IO_WARMUP_0::STEP_0",
                          "BENCHY::BenchmarkIterator::IO_WARMUP_0::DATA_0", "BENCHY::BenchmarkIterator::IO_WARMUP_0::STEP_1"));
  const auto step = std::ranges::find(recorder.names, "BENCHY::BenchmarkIterator::SYNTHETIC_0::STEP_49");
  ASSERT_GE(recorder.names.end() - step, 6);
  EXPECT_THAT(std::vector<std::string>(step + 1, step + 6),
              ElementsAre("fetch", "BENCHY::BenchmarkIterator::SYNTHETIC_0::DATA_49", "forward", "backward", "reduce"));
  EXPECT_EQ(std::ranges::count(recorder.names, "BENCHY::BenchmarkIterator::SYNTHETIC_0::STEP_50"), 0);
}

TEST(ProfiledRun, WritesATraceForTensorBoardAndATable) {
  const RecordedRun run({.profile = "wait=1,warmup=1,active=2,repeat=1", .epoch = {}, .steps = {}});
  const auto path = run.file(".pt.trace.json");
  ASSERT_FALSE(path.empty()) << run.outcome.log;
  EXPECT_TRUE(std::regex_match(path.filename().string(), std::regex(".+_\\d+\\.\\d+\\.pt\\.trace\\.json")));
  const json trace = json::parse(read_file(path, 1 << 28));
  EXPECT_TRUE(trace.contains("schemaVersion"));
  std::set<std::string> operators, annotations;
  std::set<int64_t> threads;
  for (const json& event : trace.at("traceEvents")) {
    if (event.value("cat", "") == "cpu_op") operators.insert(event.at("name"));
    if (event.value("cat", "") == "user_annotation") {
      annotations.insert(event.at("name"));
      threads.insert(event.at("tid").get<int64_t>());
    }
  }
  EXPECT_TRUE(operators.contains("aten::addmm") || operators.contains("aten::linear"));
  EXPECT_TRUE(annotations.contains("ProfilerStep#2") && annotations.contains("ProfilerStep#3"));
  EXPECT_FALSE(annotations.contains("ProfilerStep#1")) << "warming up is thrown away";
  for (const char* name : {"step 2", "forward", "backward", "optimizer"}) EXPECT_TRUE(annotations.contains(name)) << name;
  EXPECT_THAT(run.outcome.log, HasSubstr("Profiling epoch 0, steps 0 to 3"));
  EXPECT_THAT(run.outcome.log, ::testing::ContainsRegex("contraction +[1-9][0-9]* +[0-9.]+ +[0-9.]+ %"));
}

TEST(ProfiledRun, AScheduleThatIsTooLongIsCutAndSaysSo) {
  const RecordedRun run({.profile = "wait=100,warmup=1,active=2,repeat=1", .epoch = 7, .steps = {2, 3}});
  EXPECT_THAT(run.outcome.log, HasSubstr("Profiling epoch 1, steps 2 to 3: the window that was asked for is not in this run"));
  EXPECT_THAT(run.outcome.log, HasSubstr("The profiler's schedule is cut to 2 steps: wait=0,warmup=0,active=2"));
  EXPECT_FALSE(run.file(".pt.trace.json").empty());
}

TEST(ProfiledRun, DrawsATimelineOfAllThreads) {
  const RecordedRun run({.profile = {}, .timeline = true, .epoch = 1, .steps = {}});
  const json trace = json::parse(read_file(run.file("timeline.json"), 1 << 24));
  std::set<int64_t> steppers, readers;
  int steps = 0;
  for (const json& event : trace.at("traceEvents")) {
    const std::string name = event.at("name");
    if (name.starts_with("step ")) ++steps, steppers.insert(event.at("tid").get<int64_t>());
    if (name == "read") readers.insert(event.at("tid").get<int64_t>());
  }
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(steppers.size(), 1U);
  EXPECT_GE(readers.size(), 1U);
  EXPECT_FALSE(readers.contains(*steppers.begin()));
  const std::string svg = read_file(run.file("timeline.svg"), 1 << 24);
  EXPECT_THAT(svg, HasSubstr("welkin-read"));
  EXPECT_THAT(svg, HasSubstr("behind computing"));
  EXPECT_THAT(run.outcome.log, ::testing::ContainsRegex("Timeline: idle [0-9.]+ % of [0-9.]+ s; reading [0-9.]+ %, of which"));
}

TEST(ProfiledRun, ManualProfilingTakesTheTutorialsWindowAndATimelineOnACpu) {
  const RecordedRun run({}, nullptr, /*manual=*/true);
  EXPECT_THAT(run.outcome.log, HasSubstr("Profiling epoch 1, steps 0 to 3: the window that was asked for is not in this run"));
  EXPECT_FALSE(run.file("timeline.svg").empty());
}

// With a GPU it would be NVIDIA's window.
TEST(ProfiledRun, AWindowAloneIsSeenAsATimeline) {
  const RecordedRun run({.profile = {}, .timeline = false, .epoch = 1, .steps = {1, 2}});
  EXPECT_THAT(run.outcome.log, HasSubstr("Profiling epoch 1, steps 1 to 2"));
  EXPECT_FALSE(run.file("timeline.svg").empty());
  const RecordedRun traced({.profile = "on", .timeline = false, .epoch = 1, .steps = {}});
  EXPECT_TRUE(traced.file("timeline.svg").empty()) << "the trace looks into it";
}

// The same bits with and without.
TEST(ProfiledRun, ChangesNoNumber) {
  const auto last = [](const RecordedRun& run) {
    return read_file(run.outcome.run.folder / "checkpoints/step_8/model.safetensors", 1 << 24);
  };
  EXPECT_EQ(last(RecordedRun({})), last(RecordedRun({.profile = "on", .timeline = true, .epoch = {}, .steps = {}})));
}

}  // namespace
}  // namespace welkin::train
