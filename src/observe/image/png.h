// SPDX-License-Identifier: Apache-2.0
// Rasters as PNG files (8-bit RGB, sRGB), through libpng. Text drawn on a raster is also in its file as text (chunk
// iTXt, "Description", one line each), so that programs can read it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "observe/image/raster.h"

namespace welkin::observe::image {

std::string encode_png(const Raster& raster);

// Writes atomically (core/file.h). Throws DataError.
void write_png(const std::filesystem::path& path, const Raster& raster);

// The picture of a PNG file's bytes, converted to 8-bit RGB on white. DataError if it is not a PNG.
Raster decode_png(std::string_view bytes);

}  // namespace welkin::observe::image
