// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/source/format.h"

#include <array>
#include <fstream>
#include <string>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/genericio/genericio_header.h"

namespace welkin::data::ingest {
namespace {

constexpr std::string_view kHdf5Signature("\x89HDF\r\n\x1a\n", 8);
constexpr size_t kLongestHeader = 128;   // before the word GRIB
constexpr size_t kLastSignature = 8192;  // offset up to which HDF5's signature is looked for in files with a user block

}  // namespace

Format format_of(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const bool classic = text.size() > 3 && text.starts_with("CDF") && (text[3] == 1 || text[3] == 2 || text[3] == 5);
  if (classic) return Format::Netcdf3;
  if (is_genericio(head)) return Format::GenericIo;
  for (size_t offset = 0; offset <= kLastSignature && offset < text.size(); offset = offset == 0 ? 512 : offset * 2) {
    if (text.substr(offset).starts_with(kHdf5Signature)) return Format::Hdf5;
  }
  if (text.substr(0, kLongestHeader).find("GRIB") != std::string_view::npos) return Format::Grib;
  return Format::Unknown;
}

Format format_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, kLastSignature + 8> head{};
  if (!file) throw DataError("ingest", cat("cannot open a file: path=", path.string()), "Check the path and its permissions");
  file.read(head.data(), head.size());
  return format_of(std::as_bytes(std::span(head.data(), static_cast<size_t>(file.gcount()))));
}

std::string_view name_of(Format format) {
  switch (format) {
    case Format::Grib:
      return "GRIB";
    case Format::Netcdf3:
      return "netCDF-3";
    case Format::Hdf5:
      return "HDF5 (netCDF-4)";
    case Format::GenericIo:
      return "GenericIO";
    case Format::Unknown:
      break;
  }
  return "unknown";
}

}  // namespace welkin::data::ingest
