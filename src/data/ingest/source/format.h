// SPDX-License-Identifier: Apache-2.0
// The format of a file by its first bytes, never by its name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace welkin::data::ingest {

enum class Format { Unknown, Grib, Netcdf3, Hdf5, GenericIo };  // Hdf5: netCDF-4 or plain HDF5; GenericIo: particles

// `head` is the beginning of a file. GRIB may stand behind a short telecommunication header.
Format format_of(std::span<const std::byte> head);

// HDF5's signature may stand at 0, 512, 1024, 2048, ... Throws DataError when the file cannot be read.
Format format_of_file(const std::filesystem::path& path);

std::string_view name_of(Format format);

}  // namespace welkin::data::ingest
