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

// Appends a PNG file to `bytes`. Of the five filters that a row can have only the difference from the row above is used: to try
// all of them, as libpng's simplified interface does, takes longer than everything else, for pictures a third smaller.
class PngWriter {
 public:
  explicit PngWriter(std::string& bytes) : bytes_(bytes), png_(png_create_write_struct(PNG_LIBPNG_VER_STRING, this, fail, warn)) {
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    WELKIN_CHECK(info_ != nullptr, "libpng: out of memory");
  }
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  void write(const Raster& raster) {
    std::vector<png_const_bytep> rows;
    for (int y = 0; y < raster.height(); ++y)
      rows.push_back(&raster.bytes()[static_cast<size_t>(y) * static_cast<size_t>(raster.width()) * 3]);
    WELKIN_CHECK(write_rows(rows, raster.width()), cat("libpng: ", reason_));
  }

 private:
  static void fail(png_structp png, png_const_charp reason) {
    static_cast<PngWriter*>(png_get_error_ptr(png))->reason_ = reason;
    png_longjmp(png, 1);
  }
  static void warn(png_structp, png_const_charp) {}
  static void append(png_structp png, png_bytep data, size_t count) {
    static_cast<PngWriter*>(png_get_io_ptr(png))->bytes_.append(reinterpret_cast<const char*>(data), count);
  }

  // Has nothing that a longjmp would leave behind.
  bool write_rows(std::vector<png_const_bytep>& rows, int width) {
    constexpr int kLevel = 3, kBitsPerColor = 8;
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_write_fn(png_, this, append, nullptr);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(width), static_cast<png_uint_32>(rows.size()), kBitsPerColor,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_filter(png_, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
    png_set_compression_level(png_, kLevel);
    png_write_info(png_, info_);
    for (png_const_bytep row : rows) png_write_row(png_, row);
    png_write_end(png_, info_);
    return true;
  }

  std::string& bytes_;
  std::string reason_;
  png_structp png_;
  png_infop info_ = nullptr;
};

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
  std::string bytes;
  PngWriter writer(bytes);
  writer.write(raster);
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
