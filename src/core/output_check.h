// SPDX-License-Identifier: Apache-2.0
// Whether a file can be written at a place, asked before hours of work whose result goes there. The places are those of file.h:
// what a symbolic link names is replaced and the link stays; a device or pipe is written to, since a rename would put a file
// there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace welkin {

// Why write_file_atomically() (file.h) would fail at this path, in words after "because"; empty where nothing speaks against it.
std::string trouble_with_output(const std::filesystem::path& path);

// ConfigError with that reason. `name` is the flag or key that names the file.
void check_output(std::string_view component, std::string_view name, const std::filesystem::path& path);

}  // namespace welkin
