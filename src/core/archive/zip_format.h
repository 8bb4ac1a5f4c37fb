// SPDX-License-Identifier: Apache-2.0
// The numbers of the zip format that reader and writer share (PKWARE APPNOTE 6.3.10).
#pragma once

#include <cstdint>

namespace welkin::archive {

inline constexpr uint32_t kLocalSignature = 0x04034b50;
inline constexpr uint32_t kCentralSignature = 0x02014b50;
inline constexpr uint32_t kEndSignature = 0x06054b50;
inline constexpr uint32_t kEnd64Signature = 0x06064b50;
inline constexpr uint32_t kEnd64LocatorSignature = 0x07064b50;
inline constexpr uint16_t kExtra64 = 0x0001;
inline constexpr uint32_t kIn64 = 0xFFFFFFFF;  // the value stands in the zip64 field
inline constexpr uint16_t kCountIn64 = 0xFFFF;
inline constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kEnd64LocatorBytes = 20;

}  // namespace welkin::archive
