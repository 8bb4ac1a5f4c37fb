// SPDX-License-Identifier: Apache-2.0
#include "observe/image/raster.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace welkin::observe::image {
namespace {

constexpr int kLargestSide = 32768;

double distance_to_segment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length2 = dx * dx + dy * dy;
  const double along = length2 > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length2, 0.0, 1.0) : 0.0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

// A part of the raster with one coverage per pixel.
class CoverageMask {
 public:
  CoverageMask(const Rect& window)
      : window_(window), coverage_(static_cast<size_t>(window.width) * static_cast<size_t>(window.height)) {}

  void add_segment(Point a, Point b, double radius) {
    const int x0 = std::max(window_.x, floor_of(std::min(a.x, b.x) - radius - 1));
    const int x1 = std::min(window_.right(), floor_of(std::max(a.x, b.x) + radius + 2));
    const int y0 = std::max(window_.y, floor_of(std::min(a.y, b.y) - radius - 1));
    const int y1 = std::min(window_.bottom(), floor_of(std::max(a.y, b.y) + radius + 2));
    for (int y = y0; y < y1; ++y) {
      for (int x = x0; x < x1; ++x) {
        const double distance = distance_to_segment({x + 0.5, y + 0.5}, a, b);
        float& seen = coverage_[index(x, y)];
        seen = std::max(seen, static_cast<float>(std::clamp(radius + 0.5 - distance, 0.0, 1.0)));
      }
    }
  }

  double at(int x, int y) const { return coverage_[index(x, y)]; }

 private:
  static int floor_of(double value) { return static_cast<int>(std::floor(std::clamp(value, -1e6, 1e6))); }
  size_t index(int x, int y) const {
    return static_cast<size_t>(y - window_.y) * static_cast<size_t>(window_.width) + static_cast<size_t>(x - window_.x);
  }

  Rect window_;
  std::vector<float> coverage_;
};

Rect bounds_of(std::span<const Polyline> lines, double margin, int width, int height) {
  double left = width, right = 0, top = height, bottom = 0;
  for (const Polyline& line : lines) {
    for (const Point& p : line) {
      left = std::min(left, p.x - margin), right = std::max(right, p.x + margin);
      top = std::min(top, p.y - margin), bottom = std::max(bottom, p.y + margin);
    }
  }
  const int x0 = static_cast<int>(std::clamp(left, 0.0, double(width))),
            x1 = static_cast<int>(std::clamp(right + 1, 0.0, double(width)));
  const int y0 = static_cast<int>(std::clamp(top, 0.0, double(height))),
            y1 = static_cast<int>(std::clamp(bottom + 1, 0.0, double(height)));
  return {x0, y0, std::max(x1 - x0, 0), std::max(y1 - y0, 0)};
}

uint8_t mix(uint8_t below, uint8_t above, double coverage) {
  return static_cast<uint8_t>(below + (above - below) * coverage + 0.5);  // to the nearest: never negative
}

}  // namespace

Raster::Raster(int width, int height, Color background) : width_(width), height_(height) {
  WELKIN_CHECK(width >= 1 && height >= 1 && width <= kLargestSide && height <= kLargestSide,
               cat("a raster of ", width, " x ", height, " pixels"));
  bytes_.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  fill({0, 0, width, height}, background);
}

Color Raster::at(int x, int y) const {
  WELKIN_CHECK(x >= 0 && x < width_ && y >= 0 && y < height_, cat("no pixel ", x, ", ", y));
  const uint8_t* pixel = &bytes_[(static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3];
  return {pixel[0], pixel[1], pixel[2]};
}

void Raster::set(int x, int y, Color color) {
  if (x < 0 || x >= width_ || y < 0 || y >= height_) return;
  uint8_t* pixel = &bytes_[(static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3];
  pixel[0] = color.red, pixel[1] = color.green, pixel[2] = color.blue;
}

void Raster::blend(int x, int y, Color color, double coverage) {
  if (x < 0 || x >= width_ || y < 0 || y >= height_) return;
  uint8_t* pixel = &bytes_[(static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3];
  pixel[0] = mix(pixel[0], color.red, coverage);
  pixel[1] = mix(pixel[1], color.green, coverage);
  pixel[2] = mix(pixel[2], color.blue, coverage);
}

void Raster::fill(const Rect& rect, Color color) {
  for (int y = std::max(rect.y, 0); y < std::min(rect.bottom(), height_); ++y) {
    for (int x = std::max(rect.x, 0); x < std::min(rect.right(), width_); ++x) set(x, y, color);
  }
}

void Raster::frame(const Rect& rect, Color color) {
  fill({rect.x - 1, rect.y - 1, rect.width + 2, 1}, color);
  fill({rect.x - 1, rect.bottom(), rect.width + 2, 1}, color);
  fill({rect.x - 1, rect.y, 1, rect.height}, color);
  fill({rect.right(), rect.y, 1, rect.height}, color);
}

void Raster::stroke(std::span<const Polyline> lines, double width, Color color) {
  const double radius = width / 2;
  const Rect window = bounds_of(lines, radius + 1, width_, height_);
  if (window.width == 0 || window.height == 0) return;
  CoverageMask mask(window);
  for (const Polyline& line : lines) {
    if (line.size() == 1) mask.add_segment(line[0], line[0], radius);
    for (size_t i = 1; i < line.size(); ++i) mask.add_segment(line[i - 1], line[i], radius);
  }
  for (int y = window.y; y < window.bottom(); ++y) {
    for (int x = window.x; x < window.right(); ++x) {
      if (mask.at(x, y) > 0) blend(x, y, color, mask.at(x, y));
    }
  }
}

}  // namespace welkin::observe::image
