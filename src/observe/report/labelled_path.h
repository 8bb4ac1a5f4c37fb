// SPDX-License-Identifier: Apache-2.0
// Parses PATH or LABEL=PATH of a command line.
#pragma once

#include <filesystem>
#include <string>

namespace welkin::observe {

struct LabelledPath {
  std::string label;  // empty: none was given
  std::filesystem::path path;
};

// A path may contain '=': an argument that exists as a path is a path.
inline LabelledPath parse_labelled_path(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0 || std::filesystem::exists(argument)) return {{}, argument};
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

}  // namespace welkin::observe
