// SPDX-License-Identifier: Apache-2.0
// Where the program `welkin-check-files` (apps/check_files.cpp) is.
#pragma once

#include "data/check/check_child.h"

namespace welkin::apps {

// Beside libwelkin.so (a build folder), or in libexec/ beside its folder (an installed one). Where it is in neither, the first
// process of each node says so on standard error, once, before it reads the first file without it.
data::CheckHelper check_helper();

}  // namespace welkin::apps
