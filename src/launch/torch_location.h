// SPDX-License-Identifier: Apache-2.0
// Finds the torch wheel. For the launcher, which must know its place before anything of torch is loaded; so
// nothing here includes torch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace welkin::launch {

inline constexpr const char* kTorchVersion = "2.11.0";

// The places that the search uses, in this order. The first two are explicit: when they hold no torch, that is an error.
struct TorchSearch {
  std::optional<std::filesystem::path> flag = {};         // --torch
  std::optional<std::filesystem::path> environment = {};  // WELKIN_TORCH
  std::optional<std::filesystem::path> virtual_env = {};  // VIRTUAL_ENV
  std::optional<std::filesystem::path> nearby_venv = {};  // the .venv of the source tree that the binary was built in
  std::string python = "python3";  // a program name without blanks, asked where its torch is; empty: none is asked
};

// The path that an environment variable holds, if it is set and not empty.
std::optional<std::filesystem::path> environment_path(const char* name);

// The torch package inside a folder that a user may name: the package itself, its lib folder, a site-packages folder, a virtual
// environment.
std::optional<std::filesystem::path> torch_package_in(const std::filesystem::path& folder);

// The folder of the torch package. Throws ConfigError naming every place that was searched, or the version found where it is the
// wrong one.
std::filesystem::path find_torch(const TorchSearch& search);

}  // namespace welkin::launch
