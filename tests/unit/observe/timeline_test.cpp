// SPDX-License-Identifier: Apache-2.0
#include "observe/timeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "core/file.h"
#include "observe/span.h"
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
  std::jthread([&] { const Span other(&tracer, "other"); }).join();
  { const Span late(&tracer, "late"); }
  timeline.write(folder / "trace.json");
  EXPECT_EQ(timeline.num_dropped(), 1u);

  const auto trace = nlohmann::json::parse(read_file(folder / "trace.json", 1 << 20));
  const auto& events = trace.at("traceEvents");
  ASSERT_EQ(events.size(), 4u);
  const auto &inner = events[1], &outer = events[2], &other = events[3];
  EXPECT_EQ(inner.at("name"), "inner");
  EXPECT_EQ(inner.at("pid"), 3);
  EXPECT_GE(inner.at("dur"), 2000.0);
  EXPECT_LE(outer.at("ts"), inner.at("ts"));
  EXPECT_GE(outer.at("ts").get<double>() + outer.at("dur").get<double>(),
            inner.at("ts").get<double>() + inner.at("dur").get<double>());
  EXPECT_NE(other.at("tid"), outer.at("tid"));
  EXPECT_EQ(trace.at("otherData").at("dropped_spans"), 1);
}

}  // namespace
}  // namespace welkin::observe
