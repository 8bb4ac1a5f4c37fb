// SPDX-License-Identifier: Apache-2.0
// Zip files for tests: written by our writer, returned as bytes.
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/archive/zip_writer.h"
#include "core/file.h"
#include "core/hash.h"

namespace welkin::archive {

inline std::string zip_file(const std::vector<std::pair<std::string, std::string>>& entries, bool always_zip64 = false) {
  const auto path = std::filesystem::temp_directory_path() / ("welkin_zip_" + std::to_string(std::random_device{}()));
  {
    const FileDescriptor file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    ZipWriter zip(file, path, always_zip64);
    for (const auto& [name, bytes] : entries) zip.add(name, as_byte_span(bytes));
    zip.finish();
  }
  std::string bytes = read_file(path, 1 << 24);
  std::filesystem::remove(path);
  return bytes;
}

}  // namespace welkin::archive
