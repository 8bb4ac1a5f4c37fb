// SPDX-License-Identifier: Apache-2.0
#include "observe/report/score_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/file.h"
#include "temporary_folder.h"

namespace welkin::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ScoreFiles : public ::testing::Test {
 protected:
  std::vector<ScoreSeries> read(const std::string& text) {
    write_file_atomically(folder_ / "scores.json", text);
    return read_scores("mine=" + (folder_ / "scores.json").string());
  }
  TemporaryFolder folder_;
};

TEST_F(ScoreFiles, OfForecastFilesByLeadWithUnitAndInterval) {
  const auto all = read(R"({"lead_hours": [6, 12], "channels": {"t2m": "K"}, "scores": [
    {"forecast": "forecast", "channel": "t2m", "region": "globe", "season": "year", "score": "rmse",
     "values": [1.5, null], "low": [1, null], "high": [2, null]}, 7]})");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].source, "mine");
  EXPECT_EQ(all[0].score, "rmse [K]");
  EXPECT_EQ(all[0].place, "globe, year");
  EXPECT_THAT(all[0].leads, ElementsAre(6, 12));
  EXPECT_EQ(all[0].values[0], 1.5);
  EXPECT_TRUE(std::isnan(all[0].values[1]));
}

TEST_F(ScoreFiles, OfARolloutLeadAfterLead) {
  const auto all = read(R"({"starts": 2, "leads": [
    {"lead": 1, "channels": {"u": {"unit": "m s-1", "model": {"rmse": 0.5, "rmse_physical": 2.0}}}},
    {"lead": 2, "channels": {"u": {"unit": "m s-1", "model": {"rmse": 0.75, "rmse_physical": 3.0}}}}]})");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].score, "rmse_physical [m s-1]");
  EXPECT_THAT(all[1].leads, ElementsAre(1, 2));
  EXPECT_THAT(all[1].values, ElementsAre(2, 3));
}

TEST_F(ScoreFiles, AnythingElseIsRefused) {
  for (const char* text : {"", "[]", "{}", "{\"leads\": [3]}", "{\"scores\": {}, \"channels\": [1]}"}) {
    EXPECT_THAT([&] { read(text); }, ThrowsMessage<DataError>(HasSubstr("[report] no scores in this file: path="))) << text;
  }
  EXPECT_THAT([&] { read(std::string(1'000'000, '[')); }, ThrowsMessage<DataError>(HasSubstr("no scores in this file")));
}

TEST_F(ScoreFiles, ALeadThatIsNestedWithoutEndIsNoNumber) {
  const std::string nested = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const auto all = read(R"({"leads": [{"lead": )" + nested + R"(, "channels": {"u": {"model": {"rmse": 0.5}}}}]})");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(std::isnan(all[0].leads.at(0)));
}

}  // namespace
}  // namespace welkin::observe
