// SPDX-License-Identifier: Apache-2.0
#include "observe/plot/plot_picture.h"

#include "core/text.h"
#include "observe/image/png.h"
#include "observe/plot/markup.h"

namespace welkin::observe {
std::string picture_svg(const image::Raster& raster, std::string_view title) {
  const std::string size = cat("width=\"", raster.width(), "\" height=\"", raster.height(), "\"");
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" ", size, ">\n<title>", escaped_markup(title), "</title>\n<image ", size,
             " href=\"data:image/png;base64,", base64(image::encode_png(raster)), "\"/>\n</svg>\n");
}

}  // namespace welkin::observe
