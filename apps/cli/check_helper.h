// SPDX-License-Identifier: Apache-2.0
// Where the program `welkin-check-files` (apps/check_files.cpp) is.
#pragma once

#include <filesystem>

namespace welkin::apps {

// Beside libwelkin.so (a build folder), or in libexec/ beside its folder (an installed one). It may not exist.
std::filesystem::path check_helper();

}  // namespace welkin::apps
