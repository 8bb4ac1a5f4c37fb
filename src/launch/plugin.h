// SPDX-License-Identifier: Apache-2.0
// A user's shared object: opened once, kept open for the life of the process (its code is called until the end). It does not
// know what a plug-in registers: the caller casts the entry point.
#pragma once

#include <filesystem>

namespace welkin::launch {

// The address of `symbol` in the shared object at `path`. Throws ConfigError with the loader's text when the file cannot be
// opened, with the symbol's name when it has none, and with both stamps when it was built with other headers than this program.
void* load_plugin(const std::filesystem::path& path, const char* symbol);

}  // namespace welkin::launch
