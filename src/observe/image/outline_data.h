// SPDX-License-Identifier: Apache-2.0
// Outlines of land, compiled in (cmake/WelkinOutlines.cmake makes the source). Internal to map_frame.cpp.
#pragma once

#include <string_view>

namespace welkin::observe::image {

// 16-bit numbers, low byte first: for each line the number of its points, then longitude and latitude of each in hundredths of
// a degree. Empty in a build without outlines.
std::string_view outline_bytes();

}  // namespace welkin::observe::image
