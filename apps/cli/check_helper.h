// SPDX-License-Identifier: Apache-2.0
// Finds the program `welkin-check-files` (apps/check_files.cpp).
#pragma once

#include "data/check/check_child.h"

namespace welkin::apps {

// Looks beside libwelkin.so (build folder) and in libexec/ beside its folder (installation). If it is in neither, the first
// process of each node says so on standard error, once, before it reads the first file without it.
data::CheckHelper check_helper();

}  // namespace welkin::apps
