// SPDX-License-Identifier: Apache-2.0
#include "observe/report/mlflow_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/file.h"
#include "temporary_folder.h"

namespace welkin::observe {
namespace {

using ::testing::HasSubstr;

TEST(MlflowStore, NamesStayInsideOfTheirFolder) {
  EXPECT_EQ(mlflow_name("Loss/train"), "Loss/train");
  EXPECT_EQ(mlflow_name("RMSE(u10m)/valid"), "RMSE_u10m_/valid");
  EXPECT_EQ(mlflow_name("../../etc/passwd"), "_/_/etc/passwd");
  EXPECT_EQ(mlflow_name("/a//b/"), "_/a/_/b/_");
}

std::string only_folder(const std::filesystem::path& in) {
  for (const auto& entry : std::filesystem::directory_iterator(in)) {
    if (entry.is_directory()) return entry.path().string();
  }
  return {};
}

TEST(MlflowStore, HoldsMetricsParametersAndState) {
  const TemporaryFolder folder;
  RunHistory run{.label = "a \"run\"", .folder = "/runs/a"};
  run.scalars.first_wall_time = 1000;
  run.scalars.by_tag["Loss"] = {{10, 1001.5, 0.25}};
  run.scalars.by_tag["Loss/train"] = {{10, 1001.5, 0.2f}, {20, 1002, std::nan("")}};
  run.facts.configuration["lr"] = "0.001";
  run.facts.state = "failed";
  write_mlflow_store(folder / "mlruns", "welkin", {run});
  write_mlflow_store(folder / "mlruns", "welkin", {run});  // the same place again
  const std::filesystem::path experiment = only_folder(folder / "mlruns"), stored = only_folder(experiment);
  EXPECT_THAT(read_file(experiment / "meta.yaml", 4096), HasSubstr("name: \"welkin\""));
  EXPECT_EQ(read_file(stored / "metrics/Loss/train", 4096), "1001500 0.2 10\n1002000 nan 20\n");
  EXPECT_EQ(read_file(stored / "metrics/Loss_", 4096), "1001500 0.25 10\n");
  EXPECT_EQ(read_file(stored / "params/lr", 4096), "0.001");
  const std::string meta = read_file(stored / "meta.yaml", 4096);
  EXPECT_THAT(meta, HasSubstr("run_name: \"a \\\"run\\\"\"\n"));
  EXPECT_THAT(meta, HasSubstr("status: 4\n"));
  EXPECT_THAT(meta, HasSubstr("end_time: 1002000\n"));
}

TEST(MlflowStore, TagsOfOneNameKeepAFileEach) {
  const TemporaryFolder folder;
  RunHistory run{.label = "a", .folder = "/runs/a"};
  run.scalars.first_wall_time = 1000;
  double value = 1;
  for (const char* tag : {"a<b", "a>b", "a_b", "a_b_/c", "a_b_2"}) run.scalars.by_tag[tag] = {{10, 1000, value++}};
  write_mlflow_store(folder / "mlruns", "welkin", {run});
  const std::filesystem::path metrics = std::filesystem::path(only_folder(only_folder(folder / "mlruns"))) / "metrics";
  std::set<std::string> texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(metrics)) {
    if (entry.is_regular_file()) texts.insert(read_file(entry.path(), 4096));
  }
  EXPECT_EQ(texts.size(), 5u);
}

}  // namespace
}  // namespace welkin::observe
