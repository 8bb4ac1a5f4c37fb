// SPDX-License-Identifier: Apache-2.0
#include "observe/image/animation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "observe/image/png.h"
#include "temporary_folder.h"

namespace welkin::observe::image {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::string> three_frames() {
  std::vector<std::string> frames;
  for (const uint8_t shade : std::vector<uint8_t>{0, 100, 200}) frames.push_back(encode_png(Raster(20, 10, {shade, 0, 0})));
  return frames;
}

std::vector<std::string> chunk_types(const std::string& png) {
  std::vector<std::string> types;
  for (size_t at = 8; at + 12 <= png.size();) {
    const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(png[at + i])); };
    types.push_back(png.substr(at + 4, 4));
    at += 12 + (byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3));
  }
  return types;
}

TEST(Animation, AnApngIsAPngOfItsFirstFrameWithMoreBehindIt) {
  const std::string file = encode_apng(three_frames(), 0.5);
  EXPECT_EQ(decode_png(file).at(3, 3), (Color{0, 0, 0})) << "what a reader of PNG sees";
  const auto types = chunk_types(file);
  EXPECT_EQ(std::count(types.begin(), types.end(), "fcTL"), 3);
  EXPECT_GE(std::count(types.begin(), types.end(), "fdAT"), 2);
  EXPECT_LT(std::find(types.begin(), types.end(), "acTL"), std::find(types.begin(), types.end(), "IDAT"));
  EXPECT_EQ(types.back(), "IEND");
}

TEST(Animation, FramesOfSeveralSizesAreRefused) {
  const std::vector<std::string> frames{encode_png(Raster(20, 10)), encode_png(Raster(10, 20))};
  EXPECT_THROW(encode_apng(frames, 0.5), InternalError);
}

TEST(Animation, FormatsAreKnownByName) {
  EXPECT_EQ(parse_animation_format("apng"), AnimationFormat::Apng);
  EXPECT_EQ(extension_of(AnimationFormat::Mp4), ".mp4");
  EXPECT_THAT([] { parse_animation_format("avi"); },
              ThrowsMessage<ConfigError>(HasSubstr("[animation] there is no such format: format=avi. Choose apng, gif or mp4")));
}

class OtherPath : public ::testing::Test {
 protected:
  OtherPath() : former_(std::getenv("PATH")) {}
  ~OtherPath() override { ::setenv("PATH", former_.c_str(), 1); }
  void program(const std::string& text) {
    write_file_atomically(folder_ / "ffmpeg", text);
    std::filesystem::permissions(folder_ / "ffmpeg", std::filesystem::perms::owner_all);
    ::setenv("PATH", (folder_.path().string() + ":" + former_).c_str(), 1);
  }
  std::string former_;
  TemporaryFolder folder_;
};

TEST_F(OtherPath, WithoutFfmpegTheOtherFormatsAreRefusedBeforehand) {
  ::setenv("PATH", folder_.path().c_str(), 1);
  EXPECT_THAT(
      [] { parse_animation_format("mp4"); },
      ThrowsMessage<ConfigError>(HasSubstr("[animation] the program ffmpeg is not installed: format=mp4. Install ffmpeg")));
}

// A stand-in that copies the second frame: what it is called with, and that it finds the frames.
TEST_F(OtherPath, FfmpegIsGivenTheFramesAndItsFileIsMovedIntoPlace) {
  program("#!/bin/sh\nfor last; do :; done\nwhile [ \"$1\" != -i ]; do shift; done\ncp \"$(dirname \"$2\")/1.png\" \"$last\"\n");
  write_animation(folder_ / "out.mp4", parse_animation_format("mp4"), three_frames(), 0.5);
  EXPECT_EQ(decode_png(read_file(folder_ / "out.mp4", 1 << 20)).at(3, 3), (Color{100, 0, 0}));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_FALSE(entry.is_directory()) << "frames stay behind: " << entry.path();
}

TEST_F(OtherPath, WhatFfmpegSaysIsInTheError) {
  program("#!/bin/sh\necho no encoder here\nexit 3\n");
  EXPECT_THAT([&] { write_animation(folder_ / "out.gif", AnimationFormat::Gif, three_frames(), 0.5); },
              ThrowsMessage<DataError>(HasSubstr("code=3, says=no encoder here")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.gif"));
}

}  // namespace
}  // namespace welkin::observe::image
