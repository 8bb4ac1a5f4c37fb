// SPDX-License-Identifier: Apache-2.0
// A look at the header of a netCDF-3 file before netCDF-C sees it: version 4.9.0 of that library takes minutes and gigabytes over
// a header whose damaged counts reach beyond the file. Format: NetCDF Users Guide, appendix "File Format Specifications".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace welkin::data::ingest {

// `head` begins with the first byte of the file and holds at least the whole header, or the whole file. Empty when every name,
// attribute, dimension and variable lies inside `head` and the values inside `file_bytes`; else the fault.
std::string netcdf3_problem(std::span<const std::byte> head, uint64_t file_bytes);

}  // namespace welkin::data::ingest
