// SPDX-License-Identifier: Apache-2.0
// Rasters as PNG files (8-bit RGB, sRGB), through libpng. What is lettered on a raster stands in its file as text too (chunk
// iTXt, "Description", a line each): programs find and read it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "observe/image/raster.h"

namespace welkin::observe::image {

std::string encode_png(const Raster& raster);

// Atomically (core/file.h). Throws DataError.
void write_png(const std::filesystem::path& path, const Raster& raster);

// The picture in a PNG file's bytes, converted to 8-bit RGB on white. Throws DataError for anything else.
Raster decode_png(std::string_view bytes);

}  // namespace welkin::observe::image
