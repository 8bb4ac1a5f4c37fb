// SPDX-License-Identifier: Apache-2.0
#include "observe/report/run_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "observe/events/event_writer.h"
#include "observe/report/run_report.h"
#include "temporary_folder.h"

namespace welkin::observe {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
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

TEST_F(RunHistories, ATargetThatNobodyReachesIsAnEmptyCell) {
  const RunComparison comparison = compare_runs(all(), {.target = 0.1});
  EXPECT_EQ(comparison.fastest, std::nullopt);
  const auto json = nlohmann::json::parse(comparison_json(comparison));
  EXPECT_TRUE(json["runs"][0]["seconds_to_target"].is_null());
  EXPECT_TRUE(json["fastest"].is_null());
  EXPECT_EQ(json["runs"][0]["best"]["step"], 30);
  EXPECT_THAT(comparison_text(compare_runs(all(), {.score = "absent"})), HasSubstr("No run has the score absent"));
}

// The colour of a run's line in the legend of each picture, and whether that line is dashed.
std::vector<std::pair<std::string, bool>> lines_of_run(const std::string& page, const std::string& label) {
  std::vector<std::pair<std::string, bool>> found;
  const std::regex entry("<polyline[^>]*stroke=\"(#[0-9a-f]+)\"([^>]*)/>\\s*<text[^>]*>" + label + "</text>");
  for (std::sregex_iterator it(page.begin(), page.end(), entry), end; it != end; ++it) {
    found.emplace_back((*it)[1], (*it)[2].str().find("dasharray") != std::string::npos);
  }
  return found;
}

TEST_F(RunHistories, ARunLooksTheSameInEveryPictureAndLikeNoOther) {
  std::vector<RunHistory> runs;
  for (int i = 0; i < 8; ++i) {
    runs.push_back(all()[0]);
    runs.back().label = cat("run", i);
    if (i > 0) runs.back().scalars.by_tag["RMSE"] = {{0, 1000, 1.0}, {10, 1010, 2.0}};  // the first has none
  }
  const std::string page = comparison_html(compare_runs(runs, {}), runs);
  std::set<std::pair<std::string, bool>> looks;
  for (const RunHistory& run : runs) {
    const auto lines = lines_of_run(page, run.label);
    ASSERT_FALSE(lines.empty()) << run.label;
    EXPECT_THAT(lines, ::testing::Each(lines.front())) << run.label;
    looks.insert(lines.front());
  }
  EXPECT_EQ(looks.size(), runs.size());
}

TEST_F(RunHistories, ThePageHoldsItsCurvesAndAsksForNothing) {
  auto runs = all();
  runs[0].label = "<script>alert(1)</script>";
  runs[1].scalars.by_tag["a & <b>"] = {{0, 1000, 1.0}, {10, 1010, 2.0}};
  const std::string page = comparison_html(compare_runs(runs, {}), runs);
  EXPECT_THAT(page, HasSubstr("relative wall time, seconds"));
  EXPECT_THAT(page, HasSubstr(">samples<"));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, HasSubstr("a &amp; &lt;b&gt;"));
  for (const char* part : {"<script", "<b>", "href=", "src=", "url(", "@import"}) EXPECT_THAT(page, Not(HasSubstr(part)));
}

}  // namespace
}  // namespace welkin::observe
