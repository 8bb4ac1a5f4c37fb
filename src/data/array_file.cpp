// SPDX-License-Identifier: Apache-2.0
#include "data/array_file.h"

#include <array>
#include <cstring>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/formats.h"

namespace welkin::data {
namespace {

struct FormatRow {
  ArrayFormat format;
  std::string_view name;
  ArrayFile (*open)(const std::filesystem::path&);
};

constexpr std::array kFormats{FormatRow{ArrayFormat::Hdf5, "HDF5", open_hdf5_arrays},
                              FormatRow{ArrayFormat::Npy, "npy", open_npy_array}};

bool has_bytes_at(const WatchedFile& file, uint64_t offset, std::string_view magic) {
  std::array<std::byte, 16> head{};
  if (magic.size() > file.size() || offset > file.size() - magic.size()) return false;
  file.read(offset, std::span(head).first(magic.size()));
  return std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

// HDF5's signature may stand behind a user block of 512, 1024, ... bytes.
bool is_hdf5(const WatchedFile& file) {
  for (uint64_t offset = 0; offset < file.size() && offset <= (1u << 20); offset = offset == 0 ? 512 : offset * 2) {
    if (has_bytes_at(file, offset, "\x89HDF\r\n\x1a\n")) return true;
  }
  return false;
}

ArrayFormat format_of_file(const WatchedFile& file) {
  if (has_bytes_at(file, 0, "\x93NUMPY")) return ArrayFormat::Npy;
  if (is_hdf5(file)) return ArrayFormat::Hdf5;
  return ArrayFormat::Unknown;
}

}  // namespace

ArrayFormat array_format_of(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) ? ArrayFormat::Unknown : format_of_file(WatchedFile(path));
}

std::string_view array_format_name(ArrayFormat format) {
  for (const FormatRow& row : kFormats) {
    if (row.format == format) return row.name;
  }
  return "unknown";
}

ArrayFile open_array_file(const std::filesystem::path& path, std::shared_ptr<ChunkCache> cache) {
  ArrayFormat format = array_format_of(path);
  if (format == ArrayFormat::Unknown && path.extension() == ".h5") format = ArrayFormat::Hdf5;  // HDF5 says what is wrong with it
  if (format == ArrayFormat::Hdf5 && cache) return open_hdf5_arrays(path, std::move(cache));
  for (const FormatRow& row : kFormats) {
    if (row.format == format) return row.open(path);
  }
  std::string known;
  for (const FormatRow& row : kFormats) known += cat(known.empty() ? "" : ", ", row.name);
  throw DataError("data", cat("not a known format: path=", path.string(), ", known=", known),
                  "GRIB and netCDF-3 files are read by welkin data ingest");
}

}  // namespace welkin::data
