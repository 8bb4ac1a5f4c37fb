// SPDX-License-Identifier: Apache-2.0
// The log of records: blocks, checksums, what a record of each kind holds. That wandb itself reads it is tested end to end.
#include "observe/report/wandb_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/archive/crc32.h"
#include "core/file.h"
#include "temporary_folder.h"

namespace welkin::observe {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
namespace fs = std::filesystem;

uint64_t little_endian(const std::string& bytes, size_t at, int num_bytes) {
  uint64_t value = 0;
  for (int i = num_bytes - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes.at(at + static_cast<size_t>(i)));
  return value;
}

// By the description of LevelDB's log: the records, put together from their parts.
std::vector<std::string> records_of(const std::string& bytes) {
  constexpr size_t kBlock = 32768, kHeader = 7;
  EXPECT_EQ(bytes.substr(0, 7), std::string(":W&B\xE1\xBE\0", 7));
  std::vector<std::string> records;
  std::string record;
  for (size_t at = kHeader; at < bytes.size();) {
    if (const size_t room = kBlock - at % kBlock; room < kHeader) {
      at += room;
      continue;
    }
    const size_t length = little_endian(bytes, at + 4, 2);
    const std::string checked = bytes.substr(at + 6, 1 + length);  // kind and data
    EXPECT_EQ(little_endian(bytes, at, 4), archive::crc32(std::as_bytes(std::span(checked))));
    EXPECT_LE(at % kBlock + kHeader + length, kBlock);
    record += checked.substr(1);
    const int kind = checked[0];
    if (kind == 1 || kind == 4) records.push_back(std::exchange(record, {}));
    at += kHeader + length;
  }
  EXPECT_TRUE(record.empty());
  return records;
}

RunHistory run_of(const std::string& state) {
  RunHistory run{.label = "base/1GPU/00", .folder = "/runs/base/1GPU/00"};
  run.scalars.first_wall_time = 1700000000.25;
  run.scalars.by_tag["Loss/train"] = {{10, 1700000001.5, 0.25}, {20, 1700000002, std::nan("")}};
  run.scalars.by_tag["lr"] = {{20, 1700000003, 0.5}};
  run.facts.configuration = {{"lr", "0.001"}, {"model", "vit"}, {"betas", "[0.9, 0.95]"}};
  run.facts.state = state;
  return run;
}

std::string only_file(const fs::path& folder) {
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(folder)) runs.push_back(entry.path());
  EXPECT_EQ(runs.size(), 1U);
  EXPECT_THAT(runs.front().filename().string(), MatchesRegex("offline-run-20231114_221320-[0-9a-f]{8}"));
  EXPECT_TRUE(fs::is_directory(runs.front() / "files"));
  const std::string name = runs.front().filename().string();
  return read_file(runs.front() / ("run-" + name.substr(name.size() - 8) + ".wandb"), 1 << 24);
}

TEST(WandbRun, HoldsConfigurationHistorySummaryAndEnd) {
  const TemporaryFolder folder;
  write_wandb_runs(folder / "wandb", "welkin", {run_of("finished")});
  write_wandb_runs(folder / "wandb", "welkin", {run_of("finished")});  // the same place again
  const std::vector<std::string> records = records_of(only_file(folder / "wandb"));
  ASSERT_EQ(records.size(), 6U);  // header, run, two steps, summary, exit
  EXPECT_THAT(records[1], HasSubstr("base/1GPU/00"));
  EXPECT_THAT(records[1], HasSubstr("\"vit\""));
  EXPECT_THAT(records[1], HasSubstr("\"[0.9, 0.95]\""));
  EXPECT_THAT(records[2], HasSubstr("0.25"));
  EXPECT_THAT(records[2], Not(HasSubstr("lr")));
  EXPECT_THAT(records[3], HasSubstr("NaN"));
  EXPECT_THAT(records[3], HasSubstr("lr"));
  EXPECT_THAT(records[4], HasSubstr("Loss/train"));
}

TEST(WandbRun, ARunThatGoesOnHasNoEnd) {
  const TemporaryFolder folder;
  write_wandb_runs(folder / "wandb", "welkin", {run_of("running")});
  EXPECT_EQ(records_of(only_file(folder / "wandb")).size(), 5U);
}

TEST(WandbRun, RecordsOfAnySizeFillBlocks) {
  for (const size_t letters : {32000, 32600, 32650, 32660, 32700, 40000, 100000}) {
    const TemporaryFolder folder;
    RunHistory run = run_of("finished");
    run.facts.configuration["long"] = std::string(letters, 'x');
    write_wandb_runs(folder / "wandb", "welkin", {run});
    const std::vector<std::string> records = records_of(only_file(folder / "wandb"));
    ASSERT_EQ(records.size(), 6U) << letters;
    EXPECT_THAT(records[1], HasSubstr(std::string(letters, 'x')));
  }
}

}  // namespace
}  // namespace welkin::observe
