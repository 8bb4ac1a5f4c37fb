// SPDX-License-Identifier: Apache-2.0
// Checks that a file can be written, before hours of work whose result goes there. The rules are those of file.h: the
// target of a symbolic link is replaced and the link stays. A device or pipe is written to, since a rename would put a file
// there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace welkin {

// The reason why write_file_atomically() (file.h) would fail at this path, to follow "because"; empty where none is known.
std::string trouble_with_output(const std::filesystem::path& path);

// ConfigError with that reason. `name` is the flag or key that names the file.
void check_output(std::string_view component, std::string_view name, const std::filesystem::path& path);

}  // namespace welkin
