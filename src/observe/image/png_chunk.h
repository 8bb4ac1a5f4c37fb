// SPDX-License-Identifier: Apache-2.0
// The parts of a PNG file ("Portable Network Graphics Specification, Third Edition", W3C 2025, section 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace welkin::observe::image {

inline constexpr size_t kPngSignatureBytes = 8;
inline constexpr size_t kPngHeaderBytes = 13;                                      // data of IHDR, the first chunk
inline constexpr size_t kPngLengthBytes = 4, kPngTypeBytes = 4, kPngCrcBytes = 4;  // of every chunk

std::string big_endian(uint32_t value);

// A whole chunk: length, type, data and checksum.
std::string png_chunk(const std::string& type, std::string_view data);

}  // namespace welkin::observe::image
