// SPDX-License-Identifier: Apache-2.0
#include "data/formats/array_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/check_arrays.h"
#include "data/formats/formats.h"
#include "data/formats/lmdb_index.h"
#include "data/formats/sidecar.h"

namespace welkin::data {
namespace {

struct FormatRow {
  ArrayFormat format;
  std::string_view name;
  ArrayFile (*open)(const std::filesystem::path&);
};

constexpr std::array kFormats{
    FormatRow{ArrayFormat::Hdf5, "HDF5", open_hdf5_arrays}, FormatRow{ArrayFormat::Npy, "npy", open_npy_array},
    FormatRow{ArrayFormat::Zarr, "Zarr", open_zarr_arrays}, FormatRow{ArrayFormat::Tar, "WebDataset tar", open_tar_arrays},
    FormatRow{ArrayFormat::Lmdb, "LMDB", open_lmdb_arrays}, FormatRow{ArrayFormat::Raw, "raw with a sidecar", open_raw_arrays}};

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

bool is_lmdb(const WatchedFile& file) {
  std::array<std::byte, kLmdbHeadBytes> head{};
  if (file.size() < head.size()) return false;
  file.read(0, head);
  return is_lmdb_head(head);
}

// True for what looks like HDF5; false on errors, since opening the file reports them.
bool seems_hdf5(const std::filesystem::path& path) {
  try {
    if (!std::filesystem::is_regular_file(path)) return false;
    return path.extension() == ".h5" || path.extension() == ".hdf5" || is_hdf5(WatchedFile(path));
  } catch (const std::exception&) {
    return false;
  }
}

// A raw file has no mark of its own: its sidecar says that it is one.
bool is_raw(const std::filesystem::path& path) {
  const auto document = read_sidecar(path);
  return document && std::ranges::any_of(document->arrays, [](const auto& array) { return array.second.shape.has_value(); });
}

ArrayFormat format_of_file(const WatchedFile& file) {
  constexpr uint64_t kTarMagicOffset = 257;
  if (has_bytes_at(file, 0, "\x93NUMPY")) return ArrayFormat::Npy;
  if (is_hdf5(file)) return ArrayFormat::Hdf5;
  if (has_bytes_at(file, kTarMagicOffset, "ustar")) return ArrayFormat::Tar;
  if (is_lmdb(file)) return ArrayFormat::Lmdb;
  return is_raw(file.path()) ? ArrayFormat::Raw : ArrayFormat::Unknown;
}

ArrayFormat format_of_folder(const std::filesystem::path& path) {
  std::error_code error;
  for (const char* name : {"zarr.json", ".zgroup", ".zarray"}) {
    if (std::filesystem::is_regular_file(path / name, error)) return ArrayFormat::Zarr;
  }
  const auto database = path / "data.mdb";
  return std::filesystem::is_regular_file(database, error) && is_lmdb(WatchedFile(database)) ? ArrayFormat::Lmdb
                                                                                             : ArrayFormat::Unknown;
}

}  // namespace

ArrayFormat array_format_of(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) ? format_of_folder(path) : format_of_file(WatchedFile(path));
}

std::string_view array_format_name(ArrayFormat format) {
  for (const FormatRow& row : kFormats) {
    if (row.format == format) return row.name;
  }
  return "unknown";
}

ArrayFile open_array_file(const std::filesystem::path& path, std::shared_ptr<ChunkCache> cache) {
  ArrayFormat format = array_format_of(path);
  if (format == ArrayFormat::Unknown && path.extension() == ".h5") format = ArrayFormat::Hdf5;  // HDF5 reports the fault
  if (format == ArrayFormat::Hdf5 && cache) return open_hdf5_arrays(path, std::move(cache));
  if (format == ArrayFormat::Zarr && cache) return open_zarr_arrays(path, std::move(cache));
  for (const FormatRow& row : kFormats) {
    if (row.format == format) return row.open(path);
  }
  std::string known;
  for (const FormatRow& row : kFormats) known += cat(known.empty() ? "" : ", ", row.name);
  throw DataError("data", cat("not a known format: path=", path.string(), ", known=", known),
                  "GRIB and netCDF-3 files are read by welkin data ingest");
}

void check_array_files(std::span<const std::filesystem::path> paths) {
  std::vector<std::filesystem::path> files;
  std::ranges::copy_if(paths, std::back_inserter(files), seems_hdf5);
  check_hdf5_files(files);
}

}  // namespace welkin::data
