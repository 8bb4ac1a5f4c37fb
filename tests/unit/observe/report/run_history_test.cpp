// SPDX-License-Identifier: Apache-2.0
#include "observe/report/run_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/process/host.h"
#include "core/text.h"
#include "observe/events/event_writer.h"
#include "observe/log/event_log.h"
#include "observe/report/page_data.h"
#include "observe/report/run_phases.h"
#include "observe/report/run_report.h"
#include "observe/report/run_standing.h"
#include "temporary_folder.h"

namespace welkin::observe {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A run of `losses`, one every ten steps and `seconds` apart.
void write_run(const std::filesystem::path& run, const std::vector<float>& losses, double seconds, const char* log) {
  make_folders(run / "logs");
  if (*log != '\0') write_file_atomically(run / "out.log", log);
  double now = 1000;
  EventWriter writer(run / "logs", {.wall_time = [&now] { return now; }});
  for (size_t i = 0; i < losses.size(); ++i) {
    const auto step = static_cast<int64_t>(10 * i);
    writer.scalar("Loss/valid", losses[i], step);
    writer.scalar("Avg iters per sec", static_cast<float>(10 / seconds), step);
    now += seconds;
  }
  writer.flush();
}

class RunHistories : public ::testing::Test {
 protected:
  RunHistories() {
    write_run(folder_ / "base/1GPU/00", {1.0f, 0.5f, 0.25f, 0.2f}, 40,
              "2021-11-09 00:19:04,091 - root - INFO - global_batch_size 32\n2021-11-09 00:19:05,091 - root - INFO - "
              "global_batch_size 64\n");
    write_run(folder_ / "bs512/8GPU/00", {1.0f, 0.25f, 0.22f}, 10, " - INFO - global_batch_size 512\n");
  }
  std::vector<RunHistory> all() const { return read_runs(folder_.path().string()); }
  TemporaryFolder folder_;
};

TEST_F(RunHistories, EveryFolderWithEventFilesIsARunWithWhatItsPathSays) {
  const auto runs = all();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].label, "base/1GPU/00");
  EXPECT_EQ(runs[0].devices, 1);
  EXPECT_EQ(runs[0].global_batch, 64) << "the last of the log";
  EXPECT_EQ(runs[1].devices, 8);
  EXPECT_EQ(runs[1].scalars.by_tag.at("Loss/valid").size(), 3u);
}

TEST_F(RunHistories, RunsOfOneLabelAreToldApart) {
  for (const char* place : {"two/expA/x", "two/expB/x", "two/expB/y"})
    write_run(folder_ / place / "base/1GPU/00", {1.0f}, 10, "");
  std::vector<RunHistory> runs = read_runs((folder_ / "two").string());
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].label, runs[2].label);
  tell_apart(runs);
  EXPECT_EQ(runs[0].label, "expA/x/base/1GPU/00");
  EXPECT_EQ(runs[1].label, "expB/x/base/1GPU/00");
  EXPECT_EQ(runs[2].label, "expB/y/base/1GPU/00");
  std::vector<RunHistory> once = all(), twice = read_runs((folder_ / "two/expA").string());
  tell_apart(once);
  EXPECT_EQ(once.back().label, "expB/y/base/1GPU/00") << "of another name than the two others";
  twice.push_back(twice.front());
  tell_apart(twice);
  EXPECT_EQ(twice[0].label, twice[1].label) << "one run, named twice";
}

TEST_F(RunHistories, ALabelComesFromTheArgument) {
  const std::string run = (folder_ / "bs512/8GPU/00").string();
  EXPECT_EQ(read_runs("large=" + run).at(0).label, "large");
  EXPECT_EQ(read_runs("all=" + folder_.path().string()).at(1).label, "all bs512/8GPU/00");
}

TEST_F(RunHistories, AFolderWithoutEventFilesIsRefused) {
  make_folders(folder_ / "empty");
  EXPECT_THAT([&] { read_runs((folder_ / "empty").string()); },
              ThrowsMessage<DataError>(HasSubstr("[report] no event file: path=")));
  EXPECT_THAT([&] { read_runs((folder_ / "absent").string()); },
              ThrowsMessage<DataError>(HasSubstr("[report] no event file: path=")));
}

TEST_F(RunHistories, TimeAndCostToTheScoreThatAllReach) {
  const RunComparison comparison = compare_runs(all(), {});
  EXPECT_FLOAT_EQ(static_cast<float>(comparison.target.value_or(0)), 0.22f);
  const RunFigures& base = comparison.runs[0];
  EXPECT_EQ(base.seconds_to_target, 120);
  EXPECT_DOUBLE_EQ(base.device_hours.value_or(0), 120.0 / 3600);
  EXPECT_EQ(base.samples_per_second, 0.25 * 64);
  EXPECT_EQ(comparison.runs[1].seconds_to_target, 20);
  EXPECT_DOUBLE_EQ(comparison.runs[1].device_hours.value_or(0), 160.0 / 3600);
  EXPECT_EQ(comparison.fastest, 1u);
  EXPECT_EQ(comparison.cheapest, 0u);
  EXPECT_THAT(comparison_text(comparison),
              ContainsRegex("bs512/8GPU/00 +8 +512 +20 +512.0 +0.22 +20 +20.0 +20 +0.04444 +fastest"));
}

TEST_F(RunHistories, ARunThatOnlyGotWorseSetsNoTarget) {
  write_run(folder_ / "diverges/1GPU/00", {0.9f, 20.0f, 1.2f}, 10, "");
  const RunComparison comparison = compare_runs(all(), {});
  EXPECT_FLOAT_EQ(static_cast<float>(comparison.target.value_or(0)), 0.22f);
  EXPECT_EQ(comparison.runs[2].seconds_to_target, std::nullopt);
  EXPECT_EQ(common_target(read_runs((folder_ / "diverges").string()), "Loss/valid"), std::nullopt);
}

TEST_F(RunHistories, ScoresThatAreNoNumbersArePassedOver) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  write_run(folder_ / "nan/1GPU/00", {kNan, 0.5f, -kInf, 0.21f}, 10, "");
  const RunComparison comparison = compare_runs(all(), {});
  EXPECT_FLOAT_EQ(static_cast<float>(comparison.target.value_or(0)), 0.22f);
  const RunFigures& run = comparison.runs[2];
  ASSERT_EQ(run.label, "nan/1GPU/00");
  EXPECT_FLOAT_EQ(static_cast<float>(run.best.value_or(ScalarPoint{}).value), 0.21f);
  EXPECT_EQ(run.seconds_to_target, 30);
  write_run(folder_ / "diverges/1GPU/00", {0.9f, kNan, kInf}, 10, "");
  EXPECT_EQ(common_target(read_runs((folder_ / "diverges").string()), "Loss/valid"), std::nullopt);
  write_run(folder_ / "none/1GPU/00", {kNan, kNan}, 10, "");
  const RunComparison nothing = compare_runs(read_runs((folder_ / "none").string()), {.target = 1.0});
  EXPECT_EQ(nothing.runs[0].best, std::nullopt);
  EXPECT_EQ(nothing.fastest, std::nullopt);
  EXPECT_THAT(comparison_text(nothing), HasSubstr("No run has the score Loss/valid as a finite number"));
}

TEST_F(RunHistories, ADamagedFileTakesNothingElseAway) {
  const auto damage = [&](const std::filesystem::path& run, size_t at) {
    for (const auto& entry : std::filesystem::directory_iterator(run / "logs")) {
      std::string bytes = read_file(entry.path(), 1 << 20);
      ASSERT_LT(at, bytes.size());
      bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
      write_file_atomically(entry.path(), bytes);
    }
  };
  damage(folder_ / "bs512/8GPU/00", 200);
  const std::vector<RunHistory> runs = all();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].damage, "");
  EXPECT_THAT(runs[1].damage, HasSubstr("tfevents"));
  EXPECT_EQ(runs[1].facts.environment.back().first, "damaged");
  damage(folder_ / "base/1GPU/00", 0);
  EXPECT_THROW(read_runs((folder_ / "base").string()), DataError) << "nothing is left of it";
}

// Signal 0 asks whether a process is there.
TEST_F(RunHistories, AKilledRunDoesNotGoOn) {
  RunHistory run = all().at(0);
  EXPECT_EQ(standing_of(run), "") << "it never said";
  run.facts = {.environment = {}, .state = "running", .host = host_name(), .process = ::getpid()};
  EXPECT_EQ(standing_of(run), "running");
  run.facts.process = std::numeric_limits<int32_t>::max();  // above every limit of process numbers
  EXPECT_EQ(standing_of(run), "killed");
  run.facts.state = "finished";
  EXPECT_EQ(standing_of(run), "finished");
  run.facts.state = "running", run.facts.host = "elsewhere";
  EXPECT_EQ(standing_of(run), "running");
  run.last_write -= kSilence + std::chrono::minutes(1);
  EXPECT_EQ(standing_of(run), "silent");
}

TEST_F(RunHistories, ATargetThatNobodyReachesIsAnEmptyCell) {
  const RunComparison comparison = compare_runs(all(), {.target = 0.1});
  EXPECT_EQ(comparison.fastest, std::nullopt);
  const auto json = nlohmann::json::parse(comparison_json(comparison));
  EXPECT_TRUE(json["runs"][0]["seconds_to_target"].is_null());
  EXPECT_TRUE(json["fastest"].is_null());
  EXPECT_EQ(json["runs"][0]["best"]["step"], 30);
  EXPECT_THAT(comparison_text(compare_runs(all(), {.score = "absent"})), HasSubstr("No run has the score absent"));
}

// The data of a page, as its script reads them.
nlohmann::json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\"";
  const size_t at = page.find('>', page.find(begin)) + 1;
  return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST_F(RunHistories, ThePageHoldsItsDataAndAsksForNothing) {
  auto runs = all();
  const std::string hostile = "</script><script>alert(1)</script>&\xff";
  runs[0].label = hostile;
  runs[1].scalars.by_tag["a & <b>"] = {{0, 1000, 1.0}, {10, 1010, std::nan("")}};
  runs[1].facts.configuration["lr"] = "<img src=x onerror=alert(1)>";
  const std::string page = comparison_html(compare_runs(runs, {}), runs);
  const nlohmann::json data = data_of(page);
  EXPECT_EQ(data["runs"][0]["label"], "</script><script>alert(1)</script>&\xef\xbf\xbd");
  EXPECT_EQ(data["runs"][1]["curves"]["a & <b>"]["value"], nlohmann::json::parse("[1, null]"));
  EXPECT_EQ(data["runs"][0]["curves"]["Loss/valid"]["time"], nlohmann::json::parse("[0, 40, 80, 120]"));
  EXPECT_EQ(data["runs"][0]["curves"]["Loss/valid"]["value"][3], nlohmann::json::parse("0.2")) << "as short as float32 needs it";
  for (const char* part : {"alert(1)</script>", "<img", "href=\"http", "src=\"http", "@import", "sourceMappingURL"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  EXPECT_NE(page.find("default-src 'none'; script-src 'nonce-"), std::string::npos);
  EXPECT_NE(page.find("\ndygraphs is MIT-licenced"), std::string::npos) << "the licence of what is embedded, line by line";
}

TEST_F(RunHistories, PagesHaveNoncesOfTheirOwn) {
  const auto runs = all();
  const auto nonce = [&] {
    const std::string page = comparison_html(compare_runs(runs, {}), runs);
    const size_t at = page.find("'nonce-");
    return page.substr(at, page.find('\'', at + 1) - at);
  };
  EXPECT_NE(nonce(), nonce());
}

TEST_F(RunHistories, KeysThatDifferBetweenRunsAreNamed) {
  auto runs = all();
  EXPECT_THAT(differing_keys(runs), ::testing::IsEmpty()) << "no log of these says where its configuration begins";
  runs[0].facts.configuration = {{"lr", "0.1"}, {"depth", "2"}, {"dropout", "0"}};
  runs[1].facts.configuration = {{"lr", "0.2"}, {"depth", "2"}};
  EXPECT_THAT(differing_keys(runs), ::testing::ElementsAre("dropout", "lr"));
  const nlohmann::json data = data_of(comparison_html(compare_runs(runs, {}), runs));
  EXPECT_EQ(data["runs"][1]["configuration"], nlohmann::json::parse(R"([null, "0.2"])"));
}

TEST_F(RunHistories, PicturesOfEventFilesAreInThePage) {
  {
    EventWriter writer(folder_ / "base/1GPU/00/logs");
    for (int64_t step = 0; step < 100; ++step) writer.image("Visualization, t2m", image::Raster(8, 4), step);
    writer.flush();
  }
  const auto runs = all();
  const auto& pictures = runs[0].scalars.pictures.at("Visualization, t2m");
  EXPECT_LE(pictures.size(), 48u);
  EXPECT_EQ(pictures.front().step, 0);
  EXPECT_EQ(pictures.back().step, 99);
  const nlohmann::json shown =
      data_of(comparison_html(compare_runs(runs, {}), runs))["runs"][0]["pictures"]["Visualization, t2m"];
  EXPECT_EQ(shown.size(), pictures.size());
  EXPECT_THAT(shown[0]["png"].get<std::string>(), ::testing::StartsWith("iVBORw0KGgo"));
}

TEST_F(RunHistories, WhatAFolderSaysIsReadAndWhatIsDamagedIsLeftOut) {
  const std::filesystem::path run = folder_ / "base/1GPU/00";
  write_file_atomically(run / "config.yaml", "run:\n  model:\n    embed_dim: 16\n    img_size: [16, 32]\n");
  write_file_atomically(run / "status.json", R"({"state": "finished", "host": "node1", "ranks": 4, "loss": [[[[]]]]})");
  write_file_atomically(run / "events.jsonl", event_line(1'500, "checkpoint", 20, 0, {{"path", std::string("step_20")}}) +
                                                  "no json\n[[[[\n{\"event\": 3}\n" +
                                                  event_line(2'000, "spike", 30, 1, {{"loss", 7.5}}) + "{\"event\": \"cut");
  const RunFacts facts = read_run_facts(run);
  EXPECT_EQ(facts.configuration.at("img_size"), "[16, 32]");
  EXPECT_EQ(facts.state, "finished");
  EXPECT_THAT(facts.environment, ::testing::Contains(std::pair<std::string, std::string>("host", "node1")));
  ASSERT_EQ(facts.events.size(), 2u);
  EXPECT_EQ(facts.events[0].wall_time, 1.5);
  EXPECT_EQ(facts.events[0].text, "path=step_20");
  EXPECT_EQ(facts.events[1].rank, 1);
  write_file_atomically(run / "config.yaml", "");
  write_file_atomically(run / "out.log",
                        "2021-11-09 00:19:04,091 - root - INFO - Configuration name: short\n"
                        "2021-11-09 00:19:04,091 - root - INFO - lr 0.001\n"
                        "2021-11-09 00:19:04,091 - root - INFO - ------\n"
                        "2021-11-09 00:19:04,091 - root - INFO - starting now\n");
  EXPECT_THAT(read_run_facts(run).configuration,
              ::testing::ElementsAre(std::pair<const std::string, std::string>("lr", "0.001")));
  write_file_atomically(run / "status.json", std::string(100'000, '['));
  EXPECT_EQ(read_run_facts(run).state, "");
}

TEST_F(RunHistories, PhasesComeFromTheWallTimesOfScalars) {
  RunHistory run{.label = "run"};
  run.scalars.first_wall_time = 1000;
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    const double end = 1000 + 10.0 * static_cast<double>(epoch);
    run.scalars.by_tag["Avg iters per sec"].push_back({100 * epoch, end - 2, 20});  // 100 steps in 5 s
    run.scalars.by_tag["Loss/train"].push_back({100 * epoch, end - 2, 1});
    run.scalars.by_tag["Loss/valid"].push_back({100 * epoch, end, 1});
  }
  const RunPhases phases = run_phases(run, 100);
  EXPECT_EQ(phases.training_s, 15);
  EXPECT_EQ(phases.validation_s, 6);
  ASSERT_EQ(phases.shown.size(), 6u);
  EXPECT_EQ(phases.shown[0].begin, 3);
  EXPECT_EQ(phases.shown[0].end, 8);
  EXPECT_FALSE(phases.shown[1].is_training);
  EXPECT_LE(run_phases(run, 3).shown.size(), 3u);
  run.scalars.by_tag["Loss/valid"].clear();
  for (auto& [tag, points] : run.scalars.by_tag) {
    for (ScalarPoint& point : points) point.wall_time = 1000;
  }
  EXPECT_LE(run_phases(run, 1).shown.size(), 1u) << "times that are all one";
}

}  // namespace
}  // namespace welkin::observe
