// SPDX-License-Identifier: Apache-2.0
// APNG: combines the chunks of PNG files ("Portable Network Graphics Specification, Third Edition", W3C 2025,
// section 11.3.4). acTL gives the number of frames; fcTL begins a frame, whose compressed data are IDAT for the first and fdAT
// for the others.
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "observe/image/animation.h"
#include "observe/image/png_chunk.h"

namespace welkin::observe::image {
namespace {

std::string big_endian_16(uint32_t value) { return big_endian(value).substr(2); }

uint32_t word_at(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < kPngLengthBytes; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

// Parts of a frame's PNG file: the chunks before its data, and the data without chunk framing.
struct PngParts {
  std::string before{};                  // whole chunks behind the signature, IHDR first
  std::vector<std::string_view> data{};  // data of each IDAT
};

PngParts parts_of(std::string_view png) {
  PngParts parts;
  for (size_t at = kPngSignatureBytes; at + kPngLengthBytes + kPngTypeBytes + kPngCrcBytes <= png.size();) {
    const size_t length = word_at(png, at);
    const std::string_view type = png.substr(at + kPngLengthBytes, kPngTypeBytes);
    const size_t whole = kPngLengthBytes + kPngTypeBytes + length + kPngCrcBytes;
    WELKIN_CHECK(whole <= png.size() - at, "a PNG whose chunk goes beyond its end");
    if (type == "IDAT") {
      parts.data.push_back(png.substr(at + kPngLengthBytes + kPngTypeBytes, length));
    } else if (parts.data.empty()) {
      parts.before += png.substr(at, whole);
    }
    at += whole;
  }
  WELKIN_CHECK(!parts.data.empty(), "a PNG without data");
  return parts;
}

// Each frame replaces the whole picture.
std::string frame_control(uint32_t number, std::string_view header, double seconds) {
  constexpr uint32_t kPerSecond = 1000;
  const std::string size(header.substr(kPngLengthBytes + kPngTypeBytes, 8)), at_corner(8, '\0'), replaces(2, '\0');
  const auto milliseconds = static_cast<uint32_t>(std::lround(seconds * kPerSecond));
  return png_chunk("fcTL",
                   big_endian(number) + size + at_corner + big_endian_16(milliseconds) + big_endian_16(kPerSecond) + replaces);
}

}  // namespace

std::string encode_apng(std::span<const std::string> frames, double seconds) {
  WELKIN_CHECK(!frames.empty(), "an animation without frames");
  const std::string forever(4, '\0');
  std::string file;
  uint32_t number = 0;
  std::string first_header;
  for (size_t f = 0; f < frames.size(); ++f) {
    const PngParts parts = parts_of(frames[f]);
    if (f == 0) {
      first_header = parts.before.substr(0, kPngLengthBytes + kPngTypeBytes + kPngHeaderBytes);
      file = frames[f].substr(0, kPngSignatureBytes) + parts.before +
             png_chunk("acTL", big_endian(static_cast<uint32_t>(frames.size())) + forever);
    }
    WELKIN_CHECK(parts.before.starts_with(first_header), "frames of several sizes");
    file += frame_control(number++, first_header, seconds);
    for (const std::string_view data : parts.data)
      file += f == 0 ? png_chunk("IDAT", data) : png_chunk("fdAT", big_endian(number++) + std::string(data));
  }
  return file + png_chunk("IEND", {});
}

}  // namespace welkin::observe::image
