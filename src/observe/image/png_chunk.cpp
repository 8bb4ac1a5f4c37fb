// SPDX-License-Identifier: Apache-2.0
#include "observe/image/png_chunk.h"

#include <zlib.h>

namespace welkin::observe::image {

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string png_chunk(const std::string& type, std::string_view data) {
  const std::string body = type + std::string(data);
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<uint32_t>(data.size())) + body + big_endian(static_cast<uint32_t>(crc));
}

}  // namespace welkin::observe::image
