// SPDX-License-Identifier: Apache-2.0
// The CRC-32 of zip files (polynomial 0xEDB88320, ISO 3309).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace welkin::archive {

// `before` continues an earlier result.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace welkin::archive
