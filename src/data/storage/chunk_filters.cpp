// SPDX-License-Identifier: Apache-2.0
#include "data/storage/chunk_filters.h"

#include <zlib.h>

#include <bit>
#include <cstring>

#include "core/text.h"

namespace welkin::data {
namespace {

constexpr size_t kChecksumBytes = 4;

// Values of four bytes, the common case, are put together word by word, which compilers turn into vector code.
void unshuffle_words(const std::byte* from, size_t count, std::byte* to) {
  const auto* plane = reinterpret_cast<const uint8_t*>(from);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t word = static_cast<uint32_t>(plane[i]) | static_cast<uint32_t>(plane[count + i]) << 8 |
                          static_cast<uint32_t>(plane[2 * count + i]) << 16 | static_cast<uint32_t>(plane[3 * count + i]) << 24;
    std::memcpy(to + 4 * i, &word, 4);
  }
}

void unshuffle(std::span<const std::byte> from, size_t element, std::span<std::byte> to) {
  const size_t count = element == 0 ? 0 : from.size() / element;
  if (element == 4 && std::endian::native == std::endian::little) {
    unshuffle_words(from.data(), count, to.data());
  } else {
    for (size_t b = 0; b < element; ++b) {
      for (size_t i = 0; i < count; ++i) to[i * element + b] = from[b * count + i];
    }
  }
  const size_t whole = count * element;  // the remaining bytes were not shuffled
  if (whole < from.size()) std::memcpy(to.data() + whole, from.data() + whole, from.size() - whole);
}

// Inflates into all of `to`. Returns an error text; empty: it succeeded.
std::string inflate_bytes(std::span<const std::byte> from, std::span<std::byte> to) {
  uLongf length = to.size();
  const int code =
      uncompress(reinterpret_cast<Bytef*>(to.data()), &length, reinterpret_cast<const Bytef*>(from.data()), from.size());
  if (code == Z_MEM_ERROR) return "deflate: out of memory";
  if (code != Z_OK) return cat("deflate: damaged data (zlib code ", code, ")");
  if (length != to.size()) return cat("deflate: ", length, " bytes instead of ", to.size());
  return {};
}

// The same with one of our codecs.
std::string decompress(const Codec& codec, std::span<const std::byte> from, std::span<std::byte> to) {
  try {
    const size_t length = decode_into(codec, from, to);
    if (length != to.size()) return cat(codec_name(codec), ": ", length, " bytes instead of ", to.size());
  } catch (const CodecFailure& failure) {
    return failure.reason;
  }
  return {};
}

bool checksum_fits(std::span<const std::byte> stored) {
  uint32_t expected = 0;
  const auto body = stored.first(stored.size() - kChecksumBytes);
  std::memcpy(&expected, stored.data() + body.size(), kChecksumBytes);
  const uint32_t sum = hdf5_fletcher32(body);
  // HDF5 before 1.6.3 wrote the halves of each word the other way round; the library still accepts that.
  const uint32_t swapped = (sum & 0x00ff00ffu) << 8 | (sum & 0xff00ff00u) >> 8;
  return expected == sum || expected == swapped;
}

// True if filter `i` was applied to a chunk of that mask.
bool applied(uint32_t mask, size_t i) { return i >= 32 || (mask >> i & 1) == 0; }

// Bytes of checksums that were added before filter `i`: they come out of it.
size_t checksums_before(const ChunkPipeline& pipeline, uint32_t mask, size_t i) {
  size_t bytes = 0;
  for (size_t j = 0; j < i; ++j) {
    bytes += pipeline.filters[j].filter == ChunkFilter::Fletcher32 && applied(mask, j) ? kChecksumBytes : 0;
  }
  return bytes;
}

}  // namespace

uint32_t hdf5_fletcher32(std::span<const std::byte> bytes) {
  uint32_t low = 0, high = 0;
  size_t words = bytes.size() / 2;
  const std::byte* at = bytes.data();
  while (words > 0) {
    const size_t block = words < 360 ? words : 360;  // no sum overflows within so many
    for (size_t i = 0; i < block; ++i, at += 2) {
      low += std::to_integer<uint32_t>(at[0]) << 8 | std::to_integer<uint32_t>(at[1]);
      high += low;
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    words -= block;
  }
  if (bytes.size() % 2 != 0) {
    low += std::to_integer<uint32_t>(*at) << 8;
    high += low;
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
  }
  low = (low & 0xffff) + (low >> 16);
  high = (high & 0xffff) + (high >> 16);
  return high << 16 | low;
}

std::string decode_chunk(const ChunkPipeline& pipeline, uint32_t mask, std::span<const std::byte> stored, ChunkScratch& scratch,
                         std::span<std::byte> out) {
  std::span<const std::byte> now = stored;
  size_t left = 0;  // filters that still are to be undone, and that change the bytes
  for (size_t i = 0; i < pipeline.filters.size(); ++i) {
    left += applied(mask, i) && pipeline.filters[i].filter != ChunkFilter::Fletcher32 ? 1 : 0;
  }
  // The output of a filter: `out` for the last one, else scratch memory that is not being read.
  const auto next_buffer = [&](size_t bytes) -> std::span<std::byte> {
    if (--left == 0 && bytes == out.size()) return out;
    std::vector<std::byte>& free = now.data() == scratch.a.data() ? scratch.b : scratch.a;
    free.resize(bytes);
    return free;
  };
  for (size_t i = pipeline.filters.size(); i-- > 0;) {
    if (!applied(mask, i)) continue;
    switch (const ChunkStep& step = pipeline.filters[i]; step.filter) {
      case ChunkFilter::Fletcher32: {
        if (now.size() < kChecksumBytes || !checksum_fits(now)) return "fletcher32: the checksum does not fit";
        now = now.first(now.size() - kChecksumBytes);
        break;
      }
      case ChunkFilter::Deflate:
      case ChunkFilter::Compressed: {
        const auto to = next_buffer(out.size() + checksums_before(pipeline, mask, i));
        std::string why = step.filter == ChunkFilter::Deflate ? inflate_bytes(now, to) : decompress(step.codec, now, to);
        if (!why.empty()) return why;
        now = to;
        break;
      }
      case ChunkFilter::Shuffle: {
        const auto to = next_buffer(now.size());
        unshuffle(now, pipeline.element_bytes, to);
        now = to;
        break;
      }
    }
  }
  if (now.size() != out.size()) return cat("it holds ", now.size(), " bytes instead of ", out.size());
  if (now.data() != out.data()) std::memcpy(out.data(), now.data(), out.size());
  return {};
}

}  // namespace welkin::data
