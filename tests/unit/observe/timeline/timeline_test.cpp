// SPDX-License-Identifier: Apache-2.0
#include "observe/timeline/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/file.h"
#include "number_close.h"
#include "observe/timeline/span.h"
#include "temporary_folder.h"

namespace welkin::observe {
namespace {

class NamesSink : public SpanSink {
 public:
  void begin(std::string_view name) noexcept override { (text += "<") += name; }
  void end(std::string_view, SpanClock::time_point) noexcept override { text += ">"; }
  std::string text;
};

TEST(Span, FeedsEverySinkInOrder) {
  NamesSink one, two;
  Tracer tracer;
  tracer.add_sink(one);
  tracer.add_sink(two);
  {
    const Span step(&tracer, "step", 7);
    Span forward(&tracer, "forward");
    forward.end();
    forward.end();
    const Span backward(&tracer, "backward");
  }
  EXPECT_EQ(one.text, "<step 7<forward><backward>>");
  EXPECT_EQ(two.text, one.text);
}

TEST(Span, IsSilentWithoutATracerOrSinks) {
  const Tracer nobody;
  const Span without(nullptr, "a");
  const Span with(&nobody, "b");
  EXPECT_FALSE(nobody.active());
}

TEST(Timeline, WritesAChromeTrace) {
  const TemporaryFolder folder;
  Timeline timeline({.rank = 3, .max_events = 3});
  Tracer tracer;
  tracer.add_sink(timeline);
  {
    const Span outer(&tracer, "outer \"\xff");
    const Span inner(&tracer, "inner");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::jthread([&] {
    pthread_setname_np(pthread_self(), "reader");
    const Span other(&tracer, "other");
  }).join();
  { const Span late(&tracer, "late"); }
  timeline.write(folder / "trace.json");
  EXPECT_EQ(timeline.num_dropped(), 1u);

  const auto trace = nlohmann::json::parse(read_file(folder / "trace.json", 1 << 20));
  std::vector<nlohmann::json> events, names;
  for (const auto& event : trace.at("traceEvents")) (event.at("ph") == "X" ? events : names).push_back(event);
  ASSERT_EQ(events.size(), 3u);
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0].at("args").at("name"), "rank 3");
  EXPECT_EQ(names[2].at("args").at("name"), "reader");
  const auto &inner = events[0], &outer = events[1], &other = events[2];
  EXPECT_EQ(inner.at("name"), "inner");
  EXPECT_EQ(inner.at("pid"), 3);
  EXPECT_GE(inner.at("dur"), 2000.0);
  EXPECT_LE(outer.at("ts"), inner.at("ts"));
  EXPECT_GE(outer.at("ts").get<double>() + outer.at("dur").get<double>(),
            inner.at("ts").get<double>() + inner.at("dur").get<double>());
  EXPECT_NE(other.at("tid"), outer.at("tid"));
  EXPECT_EQ(trace.at("otherData").at("dropped_spans"), 1);
}

// What runs beside the threads may overlap, which complete events of one thread must not.
TEST(Timeline, HasLanesBesideTheThreads) {
  const TemporaryFolder folder;
  Timeline timeline({.rank = 1, .max_events = 3});
  Tracer tracer;
  tracer.add_sink(timeline);
  const auto start = SpanClock::now();
  const auto at = [&](int64_t us) { return start + std::chrono::microseconds(us); };
  tracer.record("gradient exchange dp", "gradient exchange 0", at(1), at(4));
  tracer.record("gradient exchange dp", "gradient exchange 1", at(2), at(6));
  tracer.record("", "gradient exchange, waiting", at(3), at(6));
  tracer.record("", "too many", at(3), at(6));
  EXPECT_EQ(timeline.num_dropped(), 1u);
  const TimelineSpans spans = timeline.spans();
  ASSERT_EQ(spans.lanes.size(), 2u);
  EXPECT_EQ(spans.lanes[0], "gradient exchange dp");
  EXPECT_EQ(spans.spans[1].lane, 0);
  EXPECT_EQ(spans.spans[2].lane, 1);
  timeline.write(folder / "trace.json");
  std::map<std::string, std::vector<nlohmann::json>> by_phase;
  const auto trace = nlohmann::json::parse(read_file(folder / "trace.json", 1 << 20));
  for (const auto& event : trace.at("traceEvents")) by_phase[event.at("ph")].push_back(event);
  ASSERT_EQ(by_phase["b"].size(), 2u);
  ASSERT_EQ(by_phase["e"].size(), 2u);
  ASSERT_EQ(by_phase["X"].size(), 1u);
  ASSERT_EQ(by_phase["M"].size(), 2u) << "the process and one thread";
  for (size_t i = 0; i < 2; ++i) {
    const auto &begin = by_phase["b"][i], &end = by_phase["e"][i];
    for (const char* key : {"name", "cat", "id", "pid", "tid"}) EXPECT_EQ(begin.at(key), end.at(key)) << key;
    EXPECT_EQ(begin.at("cat"), "gradient exchange dp");
    EXPECT_LT(begin.at("ts"), end.at("ts"));
  }
  EXPECT_NE(by_phase["b"][0].at("id"), by_phase["b"][1].at("id"));
}

// Two steps of 10: lane 0 steps, lanes 1 and 2 read.
TimelineSpans two_steps() {
  return {.lanes = {"welkin", "read", "read"},
          .spans = {{"step 0", 0, 100, 10},
                    {"data copy in 0", 0, 100, 2},
                    {"forward", 0, 102, 3},
                    {"backward", 0, 105, 4},
                    {"optimizer", 0, 109, 1},
                    {"step 1", 0, 110, 10},
                    {"data copy in 1", 0, 110, 4},
                    {"forward", 0, 114, 5},
                    {"all_reduce world", 0, 119, 1},
                    {"read", 1, 90, 14},    // before the first step, while it waits, and 2 behind computing
                    {"read", 2, 103, 5},    // behind computing, one of it at once with the other thread
                    {"read", 1, 111, 1}}};  // while the second step waits
}

TEST(TimelineShares, AreThoseOfTheStepsTime) {
  const TimelineShares shares = timeline_shares(two_steps());
  EXPECT_TRUE(tests::close(shares.seconds, 20e-6, kFp64, 8));
  EXPECT_TRUE(tests::close(shares.idle, 6.0 / 20, kFp64, 64)) << "waiting for data, 2 and 4";
  EXPECT_TRUE(tests::close(shares.reading, 9.0 / 20, kFp64, 64)) << "100 to 108, and 111 to 112";
  EXPECT_TRUE(tests::close(shares.reading_hidden, 6.0 / 9, kFp64, 64)) << "102 to 108";
  EXPECT_TRUE(tests::close(shares.communicating, 1.0 / 20, kFp64, 64));
  EXPECT_EQ(shares.communication_hidden, 0);
  EXPECT_EQ(shares_line(shares),
            "idle 30.0 % of 0.000 s; reading 45.0 %, of which 66.7 % behind computing; communication 5.0 %, of which "
            "0.0 % behind computing");
  EXPECT_EQ(timeline_shares({}).seconds, 0);
}

// A step of 20 in which two buckets travel while the backward pass runs, and the step's thread waits for the second's end.
TEST(TimelineShares, WhatIsWaitedForIsNotHidden) {
  TimelineSpans timeline{.lanes = {"welkin", "gradient exchange dp"},
                         .spans = {{"step 0", 0, 100, 20},
                                   {"forward", 0, 100, 5},
                                   {"all_reduce tp", 0, 102, 1},  // inside the forward pass, which waits for it
                                   {"backward", 0, 105, 11},
                                   {"gradient exchange 0", 1, 108, 4},
                                   {"gradient exchange 1", 1, 110, 6},
                                   {"gradient exchange, waiting", 0, 112, 4},
                                   {"reduce", 0, 116, 1},
                                   {"optimizer", 0, 117, 3}}};
  const TimelineShares shares = timeline_shares(timeline);
  EXPECT_TRUE(tests::rounds_to(shares.idle, 0, 1, kFp64, 64));
  EXPECT_TRUE(tests::close(shares.communicating, 9.0 / 20, kFp64, 64)) << "102 to 103, and 108 to 116";
  EXPECT_TRUE(tests::close(shares.communication_hidden, 4.0 / 9, kFp64, 64)) << "108 to 112";
  std::erase_if(timeline.spans, [](const TimelineSpan& span) { return kind_of_span(span.name) == SpanKind::Communication; });
  EXPECT_EQ(shares_line(timeline_shares(timeline)), "idle 0.0 % of 0.000 s; reading 0.0 %, of which 0.0 % behind computing")
      << "nothing about communication where there is none";
}

// Between two steps torch's profiler writes its trace: for a hundred times as long as a step takes.
TEST(TimelineShares, TheProfilersOwnTimeIsNoPart) {
  TimelineSpans timeline = two_steps();
  const TimelineShares alone = timeline_shares(timeline);
  for (TimelineSpan& span : timeline.spans) {
    if (span.begin_us >= 110) span.begin_us += 1000;
  }
  timeline.spans.push_back({"profiler", 0, 110, 1000});
  timeline.spans.push_back({"read", 1, 500, 100});  // meanwhile
  const TimelineShares shares = timeline_shares(timeline);
  EXPECT_TRUE(tests::close(shares.profiler_seconds, 1e-3, kFp64, 8));
  EXPECT_TRUE(tests::close(shares.seconds, alone.seconds, kFp64, 64));
  EXPECT_TRUE(tests::rounds_to(shares.idle, alone.idle, 1, kFp64, 1000));
  EXPECT_TRUE(tests::rounds_to(shares.reading, alone.reading, 1, kFp64, 1000));
  EXPECT_THAT(shares_line(shares), testing::EndsWith("; the profiler's own 0.001 s are not counted"));
}

TEST(TimelineSvg, HasARowPerThreadAndMergesWhatIsThin) {
  TimelineSpans timeline = two_steps();
  const std::string svg = timeline_svg(timeline);
  EXPECT_THAT(svg, testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, testing::HasSubstr("idle 30.0 %"));
  const auto count = [](const std::string& text, const std::string& word) {
    size_t found = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(svg, "<title>"), timeline.spans.size());
  for (int i = 0; i < 100000; ++i) timeline.spans.push_back({"read <&\"", 1, 100 + 2e-4 * i, 1e-4});
  const std::string crowded = timeline_svg(timeline);
  EXPECT_LT(count(crowded, "<title>"), 1300U);
  EXPECT_EQ(count(crowded, "<&"), 0U) << "names are no markup";
  EXPECT_THAT(timeline_svg({}), testing::EndsWith("</svg>\n"));
}

}  // namespace
}  // namespace welkin::observe
