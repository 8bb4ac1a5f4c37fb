// SPDX-License-Identifier: Apache-2.0
// Reads environment variables through a function, so that tests can give others.
#pragma once

#include <functional>

namespace welkin::launch {

// getenv, or a test's table.
using ReadVariable = std::function<const char*(const char*)>;

}  // namespace welkin::launch
