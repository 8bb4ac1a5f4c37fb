// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/stage.h"

#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string counted(size_t size) {
  std::string text(size, 'a');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * i % 23);
  return text;
}

struct Staging {
  DataFolder folder;
  std::vector<std::string> lines;
  StageOptions options{
      .folder = folder / "node", .report = [this](const std::string& line) { lines.push_back(line); }, .block_bytes = 1000};
  fs::path source = folder / "far/years/1979.h5";
  fs::path copy() { return stage_file(source, options); }
};

TEST(Stage, CopiesOnceAndAgainWhenTheSourceHasChanged) {
  Staging staging;
  write_text(staging.source, counted(4321));
  const fs::path copy = staging.copy();
  EXPECT_EQ(copy.filename(), "1979.h5");
  EXPECT_TRUE(copy.parent_path().filename().string().starts_with("years-"));
  EXPECT_EQ(read_file(copy, 1 << 20), counted(4321));
  EXPECT_EQ(staging.lines.size(), 1u);
  EXPECT_EQ(staging.copy(), copy);
  EXPECT_EQ(staging.lines.size(), 1u) << "the copy is still good";
  write_text(staging.source, counted(5000));
  EXPECT_EQ(read_file(staging.copy(), 1 << 20), counted(5000));
}

TEST(Stage, ABrokenCopyGoesOnAfterItsLastGoodBlock) {
  Staging staging;
  write_text(staging.source, counted(4321));
  const fs::path copy = staging.copy();
  const std::string note = read_file(copy.string() + ".welkin", 1 << 16);
  const auto hash = [&](size_t block) { return hex_digits(xxh3_64(as_byte_span(counted(4321)).subspan(block * 1000, 1000))); };
  const auto break_off = [&](const std::string& part) {
    fs::remove(copy);
    fs::remove(copy.string() + ".welkin");
    write_text(copy.string() + ".part", part);
    write_text(copy.string() + ".part.hashes", cat("1000 ", note, hash(0), "\n", hash(1), "\n", hash(2).substr(0, 7)));
  };
  break_off(counted(4321).substr(0, 2500));
  EXPECT_EQ(read_file(staging.copy(), 1 << 20), counted(4321));
  EXPECT_THAT(staging.lines, Contains(HasSubstr("the broken copy of 1979.h5 goes on after 2")));
  // A block that the disk has lost meanwhile is copied again.
  staging.lines.clear();
  break_off(counted(4321).substr(0, 1000) + std::string(1500, '?'));
  EXPECT_EQ(read_file(staging.copy(), 1 << 20), counted(4321));
  EXPECT_THAT(staging.lines, Contains(HasSubstr("goes on after 1000 B")));
  EXPECT_FALSE(fs::exists(copy.string() + ".part"));
  EXPECT_FALSE(fs::exists(copy.string() + ".part.hashes"));
}

TEST(Stage, ACopyThatIsStoppedGoesOnLater) {
  Staging staging;
  write_text(staging.source, counted(4321));
  int blocks = 0;
  staging.options.before_block = [&blocks] {
    if (++blocks == 4) throw Interrupted("train", "stopped", "Go on");
  };
  EXPECT_THROW(staging.copy(), Interrupted);
  EXPECT_EQ(read_file(staging.copy(), 1 << 20), counted(4321));
  EXPECT_EQ(blocks, 4 + 2);
  EXPECT_THAT(staging.lines, Contains(HasSubstr("the broken copy of 1979.h5 goes on after 2")));
}

TEST(Stage, WhatItDidNotWriteStays) {
  Staging staging;
  write_text(staging.source, counted(100));
  const fs::path copy = staging.copy();
  fs::remove(copy.string() + ".welkin");
  write_text(copy, "mine");
  EXPECT_THAT([&] { staging.copy(); },
              ThrowsMessage<DataError>(
                  HasSubstr(cat("[stage] a file that Welkin did not write is in the place of a copy: path=", copy.string(),
                                ". Choose another --stage folder, or move that file away."))));
  EXPECT_EQ(read_file(copy, 100), "mine");
}

TEST(Stage, ProcessesWaitForEachOther) {
  Staging staging;
  write_text(staging.source, counted(200'000));
  std::vector<fs::path> copies(4);
  std::vector<std::jthread> threads;
  for (fs::path& copy : copies) {
    threads.emplace_back([&] { copy = stage_file(staging.source, {.folder = staging.options.folder, .block_bytes = 100}); });
  }
  threads.clear();
  for (const fs::path& copy : copies) EXPECT_EQ(read_file(copy, 1 << 20), counted(200'000));
}

TEST(Stage, AnAbsentSourceIsAnError) {
  Staging staging;
  EXPECT_THAT([&] { staging.copy(); }, ThrowsMessage<DataError>(HasSubstr("[file] cannot stage: path=")));
}

TEST(Stage, AConfigurationReadsItsCopies) {
  Staging staging;
  fs::create_directories(staging.folder / "train");
  write_field_file(staging.folder / "train/1979.h5", {});
  config::RunConfig config;
  EXPECT_EQ(staged(config, {}), config);
  config.data.dataset = "era5";
  config.data.stage = (staging.folder / "node").string();
  config.data.train_data_path = (staging.folder / "train").string();
  const config::RunConfig result = staged(config, {});
  EXPECT_TRUE(result.data.train_data_path.starts_with(*config.data.stage));
  EXPECT_TRUE(fs::exists(fs::path(result.data.train_data_path) / "1979.h5"));
  config.data.dataset = "nbody";
  write_box_file(staging.folder / "train/box.h5", 4);
  config.data.train_path = (staging.folder / "train/box.h5").string();
  EXPECT_EQ(fs::path(staged(config, {}).data.train_path).filename(), "box.h5");
}

}  // namespace
}  // namespace welkin::data::tests
