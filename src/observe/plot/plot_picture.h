// SPDX-License-Identifier: Apache-2.0
// A picture of pixels inside an SVG, for pages that take only SVG.
#pragma once

#include <string>
#include <string_view>

#include "observe/image/raster.h"

namespace welkin::observe {

// `title` becomes the picture's name for screen readers.
std::string picture_svg(const image::Raster& raster, std::string_view title);

}  // namespace welkin::observe
