// SPDX-License-Identifier: Apache-2.0
// Kept checkpoints are read again: whole ones are counted, a damaged one is reported once, one that goes away is not.
#include "train/checkpoint/background_verifier.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "scratch_folder.h"
#include "train/checkpoint/aside_folder.h"
#include "train/checkpoint/checkpoint.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void write_at(const fs::path& folder, int64_t step, std::optional<int64_t> rank = {}) {
  CheckpointIndex index;
  index.position = {.iteration = step, .epoch = 0, .step_in_epoch = step};
  fs::create_directories(folder);
  write_files(folder, index, {{.name = "model", .tensors = {{"a.weight", at::full({64}, static_cast<double>(step))}}}}, rank);
  std::ofstream(folder / "index.json") << to_json(index);
}

// Ends when `folders` has been asked `times` times.
std::vector<std::string> reports_of(const std::vector<BackgroundVerifier::Kept>& folders, int64_t times, int64_t& verified) {
  std::vector<std::string> reports;
  std::atomic<int64_t> asked{0};
  const auto list = [&] {
    ++asked;
    return folders;
  };
  BackgroundVerifier verifier(std::chrono::milliseconds(1), list, [&](const std::string& text) { reports.push_back(text); });
  while (asked <= times) std::this_thread::yield();
  verified = verifier.num_verified();
  return reports;
}

TEST(BackgroundVerifier, ReadsAllInTurnAndReportsADamagedOneOnce) {
  const ScratchFolder folder;
  for (const int64_t step : {1, 2, 3}) write_at(folder / ("step_" + std::to_string(step)), step);
  std::fstream(folder / "step_2" / "model.safetensors", std::ios::in | std::ios::out).seekp(-1, std::ios::end).put('x');
  int64_t verified = 0;
  const auto reports = reports_of({{folder / "step_1"}, {folder / "step_2"}, {folder / "step_3"}}, 9, verified);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0], HasSubstr("A kept checkpoint was written whole and is not any more: "));
  EXPECT_THAT(reports[0], HasSubstr("step_2"));
  EXPECT_GE(verified, 8);
}

// A run that saves faster than it reads again.
TEST(BackgroundVerifier, NewOnesDoNotKeepTheOldOnesWaiting) {
  const ScratchFolder folder;
  write_at(folder / "step_1", 1);
  std::fstream(folder / "step_1" / "model.safetensors", std::ios::in | std::ios::out).seekp(-1, std::ios::end).put('x');
  std::vector<BackgroundVerifier::Kept> folders{{folder / "step_1"}};
  std::atomic<int64_t> asked{0};
  const auto list = [&] {
    const std::string name = "step_" + std::to_string(2 + asked++);
    write_at(folder / name, 2);
    folders.insert(folders.begin(), {folder / name});
    return folders;
  };
  std::vector<std::string> reports;
  BackgroundVerifier verifier(std::chrono::milliseconds(1), list, [&](const std::string& text) { reports.push_back(text); });
  while (asked <= 4) std::this_thread::yield();
  EXPECT_EQ(verifier.take_damaged(), std::vector<fs::path>{folder / "step_1"});
}

TEST(BackgroundVerifier, SaysNothingOfOneThatIsRemoved) {
  const ScratchFolder folder;
  int64_t verified = 0;
  EXPECT_TRUE(reports_of({{folder / "step_1"}}, 3, verified).empty());
  EXPECT_EQ(verified, 0);
}

// Each rank has written its own file, and those of other nodes are not here.
TEST(BackgroundVerifier, ANodeHasTheFilesOfSomeRanks) {
  const ScratchFolder folder;
  for (const int64_t step : {1, 2, 3}) write_at(folder / ("step_" + std::to_string(step)), step, /*rank=*/1);
  fs::remove(folder / "step_1" / "model-r1.safetensors");
  std::fstream(folder / "step_2" / "model-r1.safetensors", std::ios::in | std::ios::out).seekp(-1, std::ios::end).put('x');
  int64_t verified = 0;
  const auto reports = reports_of({{folder / "step_1", true}, {folder / "step_2", true}, {folder / "step_3", true}}, 6, verified);
  EXPECT_THAT(reports, testing::ElementsAre(HasSubstr("step_2/model-r1.safetensors")));
  EXPECT_GE(verified, 4);
  EXPECT_THAT(reports_of({{folder / "step_1"}}, 3, verified), testing::ElementsAre(HasSubstr("a file is missing")));
}

// A step is saved again and again while it is read.
TEST(BackgroundVerifier, SaysNothingOfOneThatIsReplaced) {
  const ScratchFolder folder;
  write_at(folder / "step_1", 1);
  std::vector<std::string> reports;
  {
    BackgroundVerifier verifier(
        std::chrono::milliseconds(0), [&] { return std::vector<BackgroundVerifier::Kept>{{folder / "step_1"}}; },
        [&](const std::string& text) { reports.push_back(text); });
    for (int64_t step = 2; step < 200; ++step) {
      write_at(folder / "new", step);
      publish_over(folder / "new", folder / "step_1");
    }
  }
  EXPECT_THAT(reports, testing::IsEmpty());
}

TEST(BackgroundVerifier, ADiskThatDoesNotAnswerIsAskedAgain) {
  std::atomic<int64_t> asked{0};
  const auto list = [&]() -> std::vector<BackgroundVerifier::Kept> {
    ++asked;
    throw fs::filesystem_error("directory iterator cannot advance", std::make_error_code(std::errc::io_error));
  };
  BackgroundVerifier verifier(std::chrono::milliseconds(1), list, [](const std::string&) {});
  while (asked <= 2) std::this_thread::yield();
  EXPECT_TRUE(verifier.take_damaged().empty());
}

}  // namespace
}  // namespace welkin::train
