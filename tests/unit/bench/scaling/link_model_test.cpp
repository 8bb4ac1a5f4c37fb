// SPDX-License-Identifier: Apache-2.0
// The ring formula, its fit, and scaling tables with predicted rows.
#include "plan/link_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/scaling/collectives_bench.h"
#include "bench/scaling/scaling.h"
#include "core/error.h"
#include "core/file.h"
#include "number_close.h"
#include "scratch_folder.h"

namespace welkin::bench {
namespace {

using plan::collective_name;
using plan::CollectiveKind;
using plan::fit_links;
using plan::kCollectiveKinds;
using plan::LinkFit;
using plan::TimedCollective;
using testing::HasSubstr;

// Both in units near 1e-5 and 1: far above the roundings, far below what an error of the formula would be.
constexpr tests::Stated kSolved{1e-9, "a system of two equations, solved in double"};

TEST(LinkModel, FindsTheLatencyAndBandwidthThatTimesWereMadeWith) {
  std::vector<TimedCollective> times;
  for (const CollectiveKind kind : kCollectiveKinds) {
    const LinkFit made{.axis = "dp", .kind = kind, .ranks = 4, .latency_s = 20e-6, .bytes_per_second = 2e9};
    for (const int64_t bytes : {1024, 65536, 4194304}) times.push_back({"dp", kind, 4, bytes, made.seconds(bytes)});
  }
  const std::vector<LinkFit> fits = fit_links(times);
  ASSERT_EQ(fits.size(), 6U);
  for (const LinkFit& fit : fits) {
    EXPECT_TRUE(tests::within(fit.latency_s, 20e-6, kSolved)) << collective_name(fit.kind);
    EXPECT_TRUE(tests::within(fit.bytes_per_second * 1e-9, 2, kSolved)) << collective_name(fit.kind);
  }
  // 6 messages and 1.5 times the bytes over each link.
  EXPECT_DOUBLE_EQ(fits[0].seconds(4194304), 6 * fits[0].latency_s + 1.5 * 4194304 / fits[0].bytes_per_second);
  EXPECT_DOUBLE_EQ(fits[0].seconds(1024, 1), 0);
}

TEST(LinkModel, NeitherLatencyNorBandwidthIsNegative) {
  const auto fits =
      fit_links({{"tp", CollectiveKind::Broadcast, 2, 1000, 1e-6}, {"tp", CollectiveKind::Broadcast, 2, 2000, 3e-6}});
  EXPECT_EQ(fits.at(0).latency_s, 0);
  EXPECT_GT(fits.at(0).bytes_per_second, 0);
}

TEST(LinkModel, ACalibrationIsReadBack) {
  const train::ScratchFolder folder;
  CollectivesReport report;
  report.fits = {{.axis = "dp", .kind = CollectiveKind::AllReduce, .ranks = 4, .latency_s = 3e-5, .bytes_per_second = 1e9}};
  nlohmann::ordered_json written;
  add_collectives_json(written, report);
  const std::string path = (folder / "calibration.json").string();
  write_file_atomically(path, written.dump());
  const auto fits = read_calibration(path);
  ASSERT_EQ(fits.size(), 1U);
  EXPECT_EQ(fits[0].seconds(1 << 20), report.fits[0].seconds(1 << 20));
  write_file_atomically(path, "{\"calibration\": [{\"axis\": 3}]}");
  EXPECT_THROW(read_calibration(path), DataError);
  EXPECT_THROW(read_calibration((folder / "absent").string()), DataError);
}

ScalingTable measured_table(ScalingKind kind) {
  ScalingRow one{.ranks = 1, .batch = 8, .io = 500, .synthetic = 100, .full = 90, .nocomm = 100};
  // 160 ms of computation, 40 ms of the exchange not hidden.
  ScalingRow four{.ranks = 4, .batch = 32, .io = 900, .synthetic = 160, .full = 150, .nocomm = 200, .gradient_bytes = 1 << 20};
  if (kind == ScalingKind::Strong) four.batch = 8;
  return scaling_table(kind, {four, one});
}

TEST(Scaling, EfficiencyAndShareOfCommunication) {
  const ScalingTable table = measured_table(ScalingKind::Weak);
  EXPECT_EQ(table.rows.front().ranks, 1);
  EXPECT_DOUBLE_EQ(*table.efficiency(table.rows[1], &ScalingRow::synthetic), 0.4);
  EXPECT_DOUBLE_EQ(*communication_fraction(table.rows[1]), 0.2);
  EXPECT_THAT(scaling_text(table), HasSubstr("40.0"));
  EXPECT_THROW(scaling_table(ScalingKind::Weak, {}), DataError);
  EXPECT_THROW(scaling_table(ScalingKind::Strong, table.rows), DataError);  // their batch grows
}

TEST(Scaling, PredictsByTheRingFormulaAndMarksIt) {
  ScalingTable table = measured_table(ScalingKind::Weak);
  LinkFit link{
      .axis = "dp", .kind = CollectiveKind::AllReduce, .ranks = 4, .latency_s = 0, .bytes_per_second = 1.5 * (1 << 20) / 0.08};
  predict_rows(table, link, {2, 16});  // 80 ms at four ranks, of which 40 ms were not hidden
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_TRUE(table.rows[2].predicted);
  EXPECT_EQ(table.rows[2].batch, 128);
  const double exchange = 0.08 * (2 * 15.0 / 16) / 1.5;
  EXPECT_TRUE(tests::close(*table.rows[2].synthetic, 128 / (0.16 + 0.5 * exchange), kFp64, 64));
  EXPECT_FALSE(table.rows[2].io);
  EXPECT_THAT(scaling_text(table), HasSubstr("predicted"));
  EXPECT_TRUE(scaling_json(table)["rows"][2]["predicted"]);
  for (const auto& [name, document] : scaling_plots(table)) EXPECT_THAT(document, HasSubstr("</svg>")) << name;

  // A link that is faster than what was waited for: the rest of it stays, whatever the number of ranks.
  ScalingTable late = measured_table(ScalingKind::Weak);
  link.bytes_per_second *= 8;  // 10 ms of the 40
  predict_rows(late, link, {16});
  EXPECT_TRUE(tests::close(*late.rows[2].synthetic, 128 / (0.16 + 0.03 + exchange / 8), kFp64, 64));
  link.bytes_per_second /= 8;

  ScalingTable strong = measured_table(ScalingKind::Strong);
  predict_rows(strong, link, {8});
  EXPECT_EQ(strong.rows[2].batch, 8);
  EXPECT_TRUE(tests::close(*strong.rows[2].nocomm, 400, kFp64, 16));
  ScalingTable alone = scaling_table(ScalingKind::Weak, {measured_table(ScalingKind::Weak).rows[0]});
  EXPECT_THROW(predict_rows(alone, link, {8}), DataError);
}

TEST(Scaling, ARowIsReadFromWhatBenchWrites) {
  const train::ScratchFolder folder;
  const std::string path = (folder / "weak_scale_2.json").string();
  write_file_atomically(
      path, R"({"mode": "all", "ranks": 2, "global_batch_size": 16, "io_samples_per_s": 12.5, "synthetic_samples_per_s": 10})");
  const ScalingRow row = read_scaling_row(path);
  EXPECT_EQ(row.ranks, 2);
  EXPECT_EQ(*row.io, 12.5);
  EXPECT_FALSE(row.nocomm);
  write_file_atomically(path, "{}");
  EXPECT_THROW(read_scaling_row(path), DataError);
}

TEST(Scaling, BenchysFilesHaveNoBatchAndTheirNoddpRunsAreNocomm) {
  const train::ScratchFolder folder;
  const auto row_from = [&](const std::string& name, const std::string& text) {
    write_file_atomically((folder / name).string(), text);
    return read_scaling_row((folder / name).string());
  };
  const std::string trials = R"({"rates": [[1]], "trial_throughput": [90, 110], "avg_iter_throughput": [1], "trial_time": [1]})";
  const ScalingRow row = row_from("weak_scale_2.json", R"({"nranks": 2, "SYNTHETIC": )" + trials + "}");
  EXPECT_EQ(row.ranks, 2);
  EXPECT_EQ(*row.synthetic, 100);
  EXPECT_FALSE(row.full);
  std::vector<ScalingRow> rows{row};
  add_noddp(rows, {{.ranks = 2, .synthetic = 125}});
  EXPECT_DOUBLE_EQ(*communication_fraction(rows[0]), 0.2);
  EXPECT_THROW(add_noddp(rows, {{.ranks = 4, .synthetic = 125}}), DataError);
  ScalingTable table = scaling_table(ScalingKind::Weak, rows);
  EXPECT_THAT(scaling_plots(table).back().second, HasSubstr("</svg>"));  // no step time without a batch
  EXPECT_THROW(predict_rows(table, {.axis = "dp", .ranks = 2, .bytes_per_second = 1e9}, {8}), DataError);
  EXPECT_THROW(row_from("bad.json", R"({"nranks": 2, "SYNTHETIC": {"trial_throughput": ["x"]}})"), DataError);
}

}  // namespace
}  // namespace welkin::bench
