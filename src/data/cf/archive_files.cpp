// SPDX-License-Identifier: Apache-2.0
#include "data/cf/archive_files.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/array_file.h"
#include "data/formats/check_arrays.h"

namespace welkin::data {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestArchiveFolder = 32;

bool is_of_archive(const fs::path& path) {
  const ArrayFormat format = array_format_of(path);
  return format == ArrayFormat::Hdf5 || format == ArrayFormat::Zarr;
}

void add_archive_files(const fs::path& folder, int depth, std::vector<fs::path>& files) {
  if (depth > kDeepestArchiveFolder) return;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool is_folder = entry.is_directory();
    if (entry.path().filename().string().starts_with('.') || (!is_folder && !entry.is_regular_file())) continue;
    if (is_of_archive(entry.path())) {
      files.push_back(entry.path());
    } else if (is_folder && !entry.is_symlink()) {
      add_archive_files(entry.path(), depth + 1, files);
    }
  }
}

}  // namespace

std::vector<fs::path> archive_files(const fs::path& path) try {
  std::vector<fs::path> files;
  if (!fs::is_directory(path) || is_of_archive(path)) {
    files = {path};
  } else {
    add_archive_files(path, 0, files);
  }
  std::ranges::sort(files);
  if (files.empty()) {
    throw DataError("data", cat("no netCDF-4 files and no Zarr store: path=", path.string()),
                    "Name a store, a file or a folder of them; GRIB and netCDF-3 are read by welkin data ingest");
  }
  check_array_files(files);
  return files;
} catch (const fs::filesystem_error& error) {
  throw DataError("data", cat("cannot list the archive: path=", path.string(), ", reason=", error.code().message()),
                  "Check the path and its permissions");
}

}  // namespace welkin::data
