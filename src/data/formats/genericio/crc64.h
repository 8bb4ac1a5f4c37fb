// SPDX-License-Identifier: Apache-2.0
// CRC-64 of GenericIO: polynomial of ECMA-182, bits reversed, begun and ended with all ones ("CRC-64/XZ"). Data followed by its
// inverted sum has a sum of all ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace welkin::data {

constexpr std::array<uint64_t, 256> make_crc64_table() {
  std::array<uint64_t, 256> table{};
  for (uint64_t i = 0; i < 256; ++i) {
    uint64_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? (value >> 1) ^ 0xc96c5795d7870f42u : value >> 1;
    table[i] = value;
  }
  return table;
}

inline constexpr std::array<uint64_t, 256> kCrc64Table = make_crc64_table();

class Crc64 {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) state_ = kCrc64Table[(state_ ^ static_cast<uint64_t>(byte)) & 0xff] ^ (state_ >> 8);
  }
  uint64_t sum() const { return ~state_; }
  bool is_closed() const { return state_ == 0; }  // the inverted sum came last

 private:
  uint64_t state_ = ~uint64_t{0};
};

}  // namespace welkin::data
