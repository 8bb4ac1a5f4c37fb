// SPDX-License-Identifier: Apache-2.0
#include "observe/plot/plot_picture.h"

#include <cstdint>

#include "core/text.h"
#include "observe/image/png.h"
#include "observe/plot/markup.h"

namespace welkin::observe {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    const size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    for (size_t b = 0; b < 3; ++b) word = word << 8 | (b < count ? static_cast<uint8_t>(bytes[i + b]) : 0u);
    for (size_t c = 0; c < 4; ++c) text += c <= count ? kLetters[word >> (18 - 6 * c) & 63] : '=';
  }
  return text;
}

}  // namespace

std::string picture_svg(const image::Raster& raster, std::string_view title) {
  const std::string size = cat("width=\"", raster.width(), "\" height=\"", raster.height(), "\"");
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" ", size, ">\n<title>", escaped_markup(title), "</title>\n<image ", size,
             " href=\"data:image/png;base64,", base64(image::encode_png(raster)), "\"/>\n</svg>\n");
}

}  // namespace welkin::observe
