// SPDX-License-Identifier: Apache-2.0
// A picture in memory: 8-bit RGB, row-major, row 0 on top; pixel (x, y) covers [x, x+1) x [y, y+1). Drawing outside is
// clipped.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::observe::image {

struct Color {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
  bool operator==(const Color&) const = default;
};

inline constexpr Color kWhite{255, 255, 255};
inline constexpr Color kInk{38, 38, 38};             // text and frames
inline constexpr Color kGridGray{225, 225, 225};     // lines that help the eye
inline constexpr Color kMissingGray{190, 190, 190};  // no value

struct Point {
  double x = 0;
  double y = 0;
};
using Polyline = std::vector<Point>;

struct Rect {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  int right() const { return x + width; }
  int bottom() const { return y + height; }
};

class Raster {
 public:
  // At least 1 x 1, at most 32768 in each direction.
  Raster(int width, int height, Color background = kWhite);

  int width() const { return width_; }
  int height() const { return height_; }
  std::span<const uint8_t> bytes() const { return bytes_; }  // height * width * 3

  Color at(int x, int y) const;
  void set(int x, int y, Color color);
  void blend(int x, int y, Color color, double coverage);

  void fill(const Rect& rect, Color color);
  void frame(const Rect& rect, Color color);  // one pixel wide, just outside of `rect`

  // Antialiased, with round ends and joins. All lines form one shape: overlaps do not get darker.
  void stroke(std::span<const Polyline> lines, double width, Color color);

  // Texts drawn on it, in order (lettering.h).
  const std::vector<std::string>& texts() const { return texts_; }
  void note_text(std::string_view text) { texts_.emplace_back(text); }

 private:
  int width_;
  int height_;
  std::vector<uint8_t> bytes_;
  std::vector<std::string> texts_;
};

}  // namespace welkin::observe::image
