// SPDX-License-Identifier: Apache-2.0
#include "observe/image/png.h"

#include <png.h>

#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "observe/image/png_chunk.h"

namespace welkin::observe::image {
namespace {

// libpng's simplified interface, which keeps the longjmp of its errors internal.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

// Section 11.3.3.4: keyword, not compressed, no language, no translated keyword, UTF-8.
std::string text_chunk(const Raster& raster) {
  constexpr std::string_view kHead("Description\0\0\0\0\0", 16);
  return png_chunk("iTXt", cat(kHead, join(raster.texts(), "\n")));
}

}  // namespace

std::string encode_png(const Raster& raster) {
  PngImage image;
  image.width = static_cast<png_uint_32>(raster.width());
  image.height = static_cast<png_uint_32>(raster.height());
  image.format = PNG_FORMAT_RGB;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t length = bytes.size();
  const int done = png_image_write_to_memory(&image, bytes.data(), &length, 0, raster.bytes().data(), 0, nullptr);
  WELKIN_CHECK(done != 0, cat("libpng: ", image.message));
  bytes.resize(length);
  if (!raster.texts().empty()) {
    bytes.insert(kPngSignatureBytes + kPngLengthBytes + kPngTypeBytes + kPngHeaderBytes + kPngCrcBytes, text_chunk(raster));
  }
  return bytes;
}

void write_png(const std::filesystem::path& path, const Raster& raster) { write_file_atomically(path, encode_png(raster)); }

Raster decode_png(std::string_view bytes) {
  constexpr png_uint_32 kLargestSide = 32768;
  PngImage image;
  const auto refuse = [](std::string_view why) {
    throw DataError("png", cat("cannot read the picture: reason=", why), "Check the file");
  };
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) refuse(image.message);
  if (image.width > kLargestSide || image.height > kLargestSide) refuse("larger than 32768 pixels");
  image.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(image));
  const png_color white{255, 255, 255};
  if (png_image_finish_read(&image, &white, pixels.data(), 0, nullptr) == 0) refuse(image.message);
  Raster raster(static_cast<int>(image.width), static_cast<int>(image.height));
  for (int y = 0; y < raster.height(); ++y) {
    for (int x = 0; x < raster.width(); ++x) {
      const uint8_t* pixel = &pixels[(static_cast<size_t>(y) * image.width + static_cast<size_t>(x)) * 3];
      raster.set(x, y, {pixel[0], pixel[1], pixel[2]});
    }
  }
  return raster;
}

}  // namespace welkin::observe::image
