// SPDX-License-Identifier: Apache-2.0
#include "observe/image/raster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "number_close.h"
#include "observe/image/glyphs.h"
#include "observe/image/lettering.h"
#include "observe/image/png.h"

namespace welkin::observe::image {
namespace {

constexpr Color kBlack{0, 0, 0};

int dark_pixels(const Raster& raster, const Rect& rect) {
  int count = 0;
  for (int y = rect.y; y < rect.bottom(); ++y) {
    for (int x = rect.x; x < rect.right(); ++x) count += raster.at(x, y).green < 128 ? 1 : 0;
  }
  return count;
}

TEST(Raster, FillsAndFramesWithinItsBounds) {
  Raster raster(8, 6);
  raster.fill({6, 4, 10, 10}, kBlack);
  raster.frame({2, 2, 1, 1}, {1, 2, 3});
  EXPECT_EQ(raster.at(7, 5), kBlack);
  EXPECT_EQ(raster.at(5, 4), kWhite);
  EXPECT_EQ(raster.at(2, 2), kWhite);
  EXPECT_EQ(raster.at(1, 1), (Color{1, 2, 3}));
  EXPECT_EQ(raster.at(3, 3), (Color{1, 2, 3}));
  EXPECT_THROW(raster.at(8, 0), InternalError);
  EXPECT_THROW(Raster(0, 5), InternalError);
}

TEST(Raster, AStrokeCoversItsAreaOnce) {
  Raster raster(40, 40);
  const std::vector<Polyline> cross{{{10, 20}, {30, 20}}, {{10, 20}, {30, 20}}, {{-1e9, 35.5}, {1e9, 35.5}}};
  raster.stroke(cross, 4, {0, 0, 0});
  EXPECT_EQ(raster.at(20, 20), kBlack);
  EXPECT_EQ(raster.at(20, 17), kWhite);
  EXPECT_EQ(raster.at(0, 35), kBlack);
  // Half covered edge pixels stay half covered although the line is there twice.
  Raster thin(10, 10);
  thin.stroke(std::vector<Polyline>{{{0, 5}, {10, 5}}, {{0, 5}, {10, 5}}}, 1, kBlack);
  EXPECT_TRUE(tests::within(thin.at(5, 4).green, 128, {1, "a level of grey"}));
}

TEST(Png, ReadsBackWhatItWrote) {
  Raster raster(37, 11);
  for (int y = 0; y < 11; ++y) {
    for (int x = 0; x < 37; ++x)
      raster.set(x, y, {static_cast<uint8_t>(7 * x), static_cast<uint8_t>(23 * y), static_cast<uint8_t>(x * y)});
  }
  const std::string png = encode_png(raster);
  EXPECT_EQ(png.substr(1, 3), "PNG");
  const Raster again = decode_png(png);
  EXPECT_EQ(again.width(), 37);
  EXPECT_TRUE(std::ranges::equal(again.bytes(), raster.bytes()));
}

TEST(Png, HoldsWhatIsLetteredOnItAsText) {
  Raster raster(60, 20);
  EXPECT_EQ(encode_png(raster).find("iTXt"), std::string::npos);
  draw_text(raster, {2, 10}, "t2m [K]", {});
  draw_text(raster, {2, 10}, "", {});
  draw_text(raster, {30, 10}, "280", {});
  const std::string png = encode_png(raster);
  const std::string chunk("iTXtDescription\0\0\0\0\0t2m [K]\n280", 31);
  EXPECT_EQ(png.find(chunk), 8 + 25 + 4) << "the second chunk, behind its length";
  EXPECT_TRUE(std::ranges::equal(decode_png(png).bytes(), raster.bytes()));
}

TEST(Png, RefusesWhatIsNone) {
  const std::string png = encode_png(Raster(5, 5));
  EXPECT_THAT([] { decode_png("GIF89a"); },
              testing::ThrowsMessage<DataError>(testing::HasSubstr("[png] cannot read the picture: reason=")));
  EXPECT_THROW(decode_png(png.substr(0, png.size() / 2)), DataError);
  EXPECT_THROW(decode_png(""), DataError);
}

TEST(Glyphs, EveryPrintableCharacterHasStrokesOfItsOwn) {
  std::vector<std::string> seen;
  for (char c = '!'; c <= '~'; ++c) {
    const Glyph glyph = glyph_of(c);
    ASSERT_FALSE(glyph.strokes.empty()) << c;
    std::string shape;
    for (const Polyline& line : glyph.strokes) {
      for (const Point& p : line) {
        EXPECT_GE(p.x, 0) << c;
        EXPECT_LE(p.x, 1.1) << c;
        EXPECT_LE(p.y, 16.0 / 12) << c;
        shape += std::to_string(p.x) + "," + std::to_string(p.y) + ";";
      }
      shape += "|";
    }
    EXPECT_EQ(std::ranges::count(seen, shape), 0) << c;
    seen.push_back(shape);
  }
  EXPECT_EQ(glyph_of('\xc3').strokes.size(), glyph_of('?').strokes.size());
}

TEST(Lettering, AnchorsPlaceTheText) {
  const double width = text_width("HHHH", 10);
  EXPECT_TRUE(tests::close(width, 10 * (4 * 8.0 / 12 + 3 * kGlyphGap), kFp64, 16));
  for (const Anchor along : {Anchor::Start, Anchor::Middle, Anchor::End}) {
    Raster raster(200, 60);
    draw_text(raster, {100, 30}, "HHHH", {.size_px = 10, .along = along});
    const int left = dark_pixels(raster, {0, 0, 99, 60}), right = dark_pixels(raster, {101, 0, 99, 60});
    EXPECT_EQ(left == 0, along == Anchor::Start);
    EXPECT_EQ(right == 0, along == Anchor::End);
    EXPECT_EQ(dark_pixels(raster, {0, 0, 200, 24}) + dark_pixels(raster, {0, 36, 200, 24}), 0);
  }
  Raster turned(60, 200);
  draw_text(turned, {30, 100}, "HHHH", {.size_px = 10, .along = Anchor::Start, .turn = Turn::Left});
  EXPECT_GT(dark_pixels(turned, {0, 0, 60, 99}), 0);
  EXPECT_EQ(dark_pixels(turned, {0, 102, 60, 98}), 0);
}

TEST(Lettering, ShrinksToTheRoomButNotBeyondReading) {
  EXPECT_EQ(fitting_size("abc", 12, 1000), 12);
  EXPECT_TRUE(tests::close(text_width("a long title", fitting_size("a long title", 12, 80)), 80, kFp64, 64));
  EXPECT_EQ(fitting_size("a long title", 10, 1), 6);
}

}  // namespace
}  // namespace welkin::observe::image
