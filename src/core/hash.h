// SPDX-License-Identifier: Apache-2.0
// Checksums and hashes: xxHash for our own files, CRC-32C for TFRecord framing, FNV-1a for stable keys of names. None is
// cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace welkin {

// XXH3, 64 bits, seed 0, for checkpoints and caches.
uint64_t xxh3_64(std::span<const std::byte> bytes);
// The classic XXH64, for formats that ask for it.
uint64_t xxh64(std::span<const std::byte> bytes, uint64_t seed = 0);
// XXH3 of a whole file, read in pieces of constant size. Throws DataError.
uint64_t xxh3_64_of_file(const std::filesystem::path& path);

// XXH3 of bytes that arrive in pieces: equal to xxh3_64 of their concatenation.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(Xxh3&&) noexcept;
  Xxh3& operator=(Xxh3&&) noexcept;

  void update(std::span<const std::byte> bytes);
  uint64_t digest() const;  // of the bytes so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// FNV-1a, 64 bits (offset basis 14695981039346656037, prime 1099511628211).
constexpr uint64_t fnv1a64(std::string_view text) {
  uint64_t h = 14695981039346656037ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return h;
}

// CRC-32C (Castagnoli, RFC 3720 appendix B.4). `before` continues an earlier result.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);
// TFRecord's masking: a CRC of data that holds CRCs must not equal it (tensorflow/core/lib/hash/crc32c.h).
constexpr uint32_t mask_crc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

// Sixteen lower-case hexadecimal digits.
std::string hex_digits(uint64_t value);

inline std::span<const std::byte> as_byte_span(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace welkin
