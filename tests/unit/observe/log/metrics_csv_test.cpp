// SPDX-License-Identifier: Apache-2.0
#include "observe/log/metrics_csv.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "core/file.h"
#include "temporary_folder.h"

namespace welkin::observe {
namespace {

std::string text_at(const std::filesystem::path& path) { return read_file(path, 1 << 20); }

void add_epoch(MetricsCsv& csv, int64_t step, int64_t epoch) {
  csv.add("Loss/train", 0.5, step, epoch);
  csv.add("Loss/valid", 0.25, step, epoch);
  csv.flush();
}

TEST(MetricsCsv, OneRowPerStepWithEveryTag) {
  const TemporaryFolder folder;
  MetricsCsv csv(folder.path() / "metrics.csv", {});
  csv.add("Loss/train", 0.1, 0, 0);
  csv.add("RMSE(u, v)/valid", 1e-7, 0, 0);
  csv.flush();
  csv.add("Loss/train", std::numeric_limits<double>::quiet_NaN(), 5, 1);
  csv.flush();
  EXPECT_EQ(text_at(folder.path() / "metrics.csv"), "step,epoch,Loss/train,\"RMSE(u, v)/valid\"\n0,0,0.1,1e-07\n5,1,nan,\n");
}

TEST(MetricsCsv, ARowGrowsAfterItWasWritten) {
  const TemporaryFolder folder;
  MetricsCsv csv(folder.path() / "metrics.csv", {});
  csv.add("step loss", 3, 4, 1);
  csv.flush();
  csv.add("step loss", 2, 5, 1);
  csv.flush();
  csv.add("Loss/train", 1, 5, 1);
  csv.flush();
  csv.flush();
  EXPECT_EQ(text_at(folder.path() / "metrics.csv"), "step,epoch,step loss,Loss/train\n4,1,3,\n5,1,2,1\n");
}

TEST(MetricsCsv, RowsThatWaitGetTheColumnsOfLaterOnes) {
  const TemporaryFolder folder;
  MetricsCsv csv(folder.path() / "metrics.csv", {});
  csv.add("a", 1, 1, 1);
  csv.add("a", 2, 2, 1);
  csv.add("b", 3, 3, 1);
  csv.flush();
  EXPECT_EQ(text_at(folder.path() / "metrics.csv"), "step,epoch,a,b\n1,1,1,\n2,1,2,\n3,1,,3\n");
}

TEST(MetricsCsv, AResumedRunDropsTheRowsThatItRepeats) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.csv";
  {
    MetricsCsv csv(path, {});
    for (int64_t epoch = 1; epoch <= 3; ++epoch) add_epoch(csv, 5 * epoch, epoch);
  }
  std::ofstream(path, std::ios::app) << "20,4,0.1";  // killed while writing
  MetricsCsv csv(path, 11);
  EXPECT_EQ(text_at(path), "step,epoch,Loss/train,Loss/valid\n5,1,0.5,0.25\n10,2,0.5,0.25\n");
  add_epoch(csv, 15, 3);
  csv.add("Loss/train", 0.125, 20, 4);
  csv.flush();
  EXPECT_EQ(text_at(path), "step,epoch,Loss/train,Loss/valid\n5,1,0.5,0.25\n10,2,0.5,0.25\n15,3,0.5,0.25\n20,4,0.125,\n");
}

TEST(MetricsCsv, ANewRunKeepsTheEarlierFileAside) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.csv";
  for (int run = 0; run < 3; ++run) {
    MetricsCsv csv(path, {});
    add_epoch(csv, run, 1);
  }
  EXPECT_EQ(text_at(path), "step,epoch,Loss/train,Loss/valid\n2,1,0.5,0.25\n");
  EXPECT_EQ(text_at(folder.path() / "metrics.old-1.csv"), "step,epoch,Loss/train,Loss/valid\n0,1,0.5,0.25\n");
  EXPECT_EQ(text_at(folder.path() / "metrics.old-2.csv"), "step,epoch,Loss/train,Loss/valid\n1,1,0.5,0.25\n");
}

TEST(MetricsCsv, AFileOfAnotherKindIsKeptAside) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.csv";
  for (const char* other : {"", "a,b\n1,2\n", "step,epoch,\"half", "step\n1\n"}) {
    std::ofstream(path) << other;
    MetricsCsv csv(path, 1);
    EXPECT_EQ(text_at(path), "step,epoch\n");
  }
  EXPECT_EQ(text_at(folder.path() / "metrics.old-2.csv"), "a,b\n1,2\n");
}

}  // namespace
}  // namespace welkin::observe
