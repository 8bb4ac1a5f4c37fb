// SPDX-License-Identifier: Apache-2.0
// How variables of the environment are read where tests give others.
#pragma once

#include <functional>

namespace welkin::launch {

// getenv, or a test's table.
using ReadVariable = std::function<const char*(const char*)>;

}  // namespace welkin::launch
