// SPDX-License-Identifier: Apache-2.0
// One step between the bytes of a chunk as they are used and as they are stored: compressors, byte shuffle, checksum. Decoding
// treats its input as hostile: it never writes more than it was told to expect. Thread-safe: nothing is kept between calls.
// Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace welkin::data {

// Owned bytes that were not set to zero first.
class ByteBuffer {
 public:
  ByteBuffer() = default;
  explicit ByteBuffer(size_t size) : bytes_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}

  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  size_t size() const { return size_; }
  void shrink(size_t size) { size_ = size; }
  std::span<std::byte> span() { return {data(), size_}; }
  std::span<const std::byte> span() const { return {data(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
};

enum class CodecKind {
  Zlib,       // also what HDF5 calls deflate
  Gzip,       //
  Zstd,       //
  Lz4,        // numcodecs: four bytes of length, then one block
  Lz4Blocks,  // HDF5's filter 32004: big-endian lengths, many blocks
  Blosc,      // a version 1 frame: HDF5's filter 32001, Zarr, numcodecs
  Shuffle,    // bytes of equal significance side by side
  Crc32c      // four bytes at the end
};

struct Codec {
  CodecKind kind = CodecKind::Zlib;
  int level = 5;                   // of the compressor; blosc: 0 to 9
  size_t width = 1;                // bytes of one value: shuffle and blosc
  std::string compressor = "lz4";  // inside blosc: blosclz, lz4, lz4hc, zlib, zstd
  int shuffle = 1;                 // inside blosc: 0 none, 1 bytes, 2 bits
};

// The largest chunk that is decoded. A file that declares larger ones is refused when it is opened.
inline constexpr uint64_t kMostDecodedBytes = uint64_t{1} << 31;

// "zstd", "blosc(lz4)", ...
std::string codec_name(const Codec& codec);

// The fault without its place: callers that know path and chunk add them.
struct CodecFailure {
  std::string reason;
};

// Decodes to at most `most` bytes. Throws CodecFailure.
ByteBuffer decode(const Codec& codec, std::span<const std::byte> stored, size_t most);
// The same into given memory, whose size is the most. Returns the bytes written.
size_t decode_into(const Codec& codec, std::span<const std::byte> stored, std::span<std::byte> out);
// Throws CodecFailure when the library refuses its settings or memory is short.
ByteBuffer encode(const Codec& codec, std::span<const std::byte> values);

// Undoes `codecs` from the last to the first. The result has exactly `expected` bytes. `source` names file, data set and chunk in
// the DataError.
ByteBuffer decode_chunk(std::span<const Codec> codecs, std::span<const std::byte> stored, size_t expected,
                        std::string_view source);
ByteBuffer encode_chunk(std::span<const Codec> codecs, std::span<const std::byte> values);

uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace welkin::data
