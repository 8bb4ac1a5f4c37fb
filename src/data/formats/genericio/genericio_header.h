// SPDX-License-Identifier: Apache-2.0
// The header of a GenericIO file: a global header, then tables of variables, of ranks (blocks of particles, one per writing
// process) and, for compressed files, of blocks. The header ends with the CRC-64 of all of it. Values follow rank by rank,
// variable by variable, each with a CRC-64 of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::data {

enum class GenericIoKind { Float, Signed, Unsigned };

struct GenericIoVariable {
  std::string name;
  GenericIoKind kind = GenericIoKind::Float;
  int axis = -1;              // 0, 1, 2: the physical coordinate x, y, z
  bool may_be_ghost = false;  // as the file says it
  int bytes = 4;              // of a value: 1, 2, 4 or 8
  int64_t per_element = 1;    // values of one particle
};

// The particles that one process wrote.
struct GenericIoRank {
  std::array<uint64_t, 3> coordinates{};  // in GenericIoHeader::ranks_along
  uint64_t elements = 0;
  std::vector<uint64_t> offsets;     // per variable: first byte of its values
  std::vector<uint64_t> compressed;  // per variable: bytes of its compressed values with their checksum before them; 0: plain
};

struct GenericIoHeader {
  bool big_endian = false;
  uint64_t elements = 0;  // of all ranks in this file
  std::array<uint64_t, 3> ranks_along{};
  std::array<double, 3> origin{}, extent{};  // of the box, in the coordinates' unit
  std::vector<GenericIoVariable> variables;
  std::vector<GenericIoRank> ranks;
  std::string filter;  // of compressed values: "BLOSC"; else empty
};

inline constexpr size_t kGenericIoPrefix = 16;  // magic and size of the header

// True for the first bytes of such a file.
bool is_genericio(std::span<const std::byte> head);
// Bytes of the header by its first kGenericIoPrefix bytes; 0 where it cannot be one of a file of that size.
uint64_t genericio_header_size(std::span<const std::byte> head, uint64_t file_bytes);
// `bytes`: the whole header. DataError, with `source` for its text, for a wrong checksum, and unless every table lies in the
// header and every value in the file.
GenericIoHeader parse_genericio_header(std::span<const std::byte> bytes, uint64_t file_bytes, std::string_view source);

}  // namespace welkin::data
