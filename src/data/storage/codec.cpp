// SPDX-License-Identifier: Apache-2.0
#include "data/storage/codec.h"

#include <blosc.h>
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "core/text.h"

namespace welkin::data {
namespace {

constexpr size_t kCrcBytes = 4;

[[noreturn]] void fail_codec(std::string reason) { throw CodecFailure{std::move(reason)}; }

uint32_t little_u32(const std::byte* bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = (value << 8) | std::to_integer<uint32_t>(bytes[i]);
  return value;
}

void put_little_u32(std::byte* bytes, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>((value >> (8 * i)) & 255);
}

uint64_t read_big_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (const std::byte byte : bytes) value = (value << 8) | std::to_integer<uint64_t>(byte);
  return value;
}

void put_big_endian(std::byte* bytes, size_t width, uint64_t value) {
  for (size_t i = 0; i < width; ++i) bytes[i] = static_cast<std::byte>((value >> (8 * (width - 1 - i))) & 255);
}

int as_int(size_t size, std::string_view what) {
  if (size > static_cast<size_t>(std::numeric_limits<int>::max())) fail_codec(cat(what, " of more than 2 GiB"));
  return static_cast<int>(size);
}

// zlib's state, released on every path.
class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, 15 + 32) != Z_OK) fail_codec("zlib has no memory");  // + 32: zlib and gzip headers
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

// A gzip file may hold several members one after the other.
ByteBuffer inflate_all(std::span<const std::byte> stored, size_t most) {
  ByteBuffer out(most);
  size_t done = 0;
  const auto* in = reinterpret_cast<const Bytef*>(stored.data());
  auto left = static_cast<uInt>(as_int(stored.size(), "compressed data"));
  do {
    Inflater inflater;
    z_stream& stream = inflater.stream();
    stream.next_in = const_cast<Bytef*>(in);  // zlib does not write there
    stream.avail_in = left;
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = static_cast<uInt>(as_int(most - done, "a chunk"));
    const int code = inflate(&stream, Z_FINISH);
    if (code != Z_STREAM_END) {
      const bool longer = stream.avail_out == 0 && (code == Z_BUF_ERROR || code == Z_OK);
      fail_codec(longer                ? std::string("it holds more than its chunk")
                 : code == Z_BUF_ERROR ? std::string("it ends too early")
                                       : cat("zlib: ", stream.msg == nullptr ? "damaged" : stream.msg));
    }
    done = static_cast<size_t>(reinterpret_cast<std::byte*>(stream.next_out) - out.data());
    in = stream.next_in;
    left = stream.avail_in;
  } while (left > 1 && in[0] == 0x1F && in[1] == 0x8B);
  out.shrink(done);
  return out;
}

ByteBuffer deflate_all(std::span<const std::byte> values, int level, bool gzip) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, gzip ? 15 + 16 : 15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    fail_codec("zlib refuses its level");
  ByteBuffer out(deflateBound(&stream, values.size()));
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(values.data()));
  stream.avail_in = static_cast<uInt>(as_int(values.size(), "a chunk"));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(as_int(out.size(), "a chunk"));
  const int code = deflate(&stream, Z_FINISH);
  out.shrink(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) fail_codec("zlib could not compress");
  return out;
}

size_t decode_zstd(std::span<const std::byte> stored, std::span<std::byte> out) {
  const size_t size = ZSTD_decompress(out.data(), out.size(), stored.data(), stored.size());
  if (ZSTD_isError(size) != 0) fail_codec(cat("zstd: ", ZSTD_getErrorName(size)));
  return size;
}

ByteBuffer encode_zstd(std::span<const std::byte> values, int level) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);  // else a flipped bit may become other values
  ByteBuffer out(ZSTD_compressBound(values.size()));
  const size_t size = ZSTD_compress2(context.get(), out.data(), out.size(), values.data(), values.size());
  if (ZSTD_isError(size) != 0) fail_codec(cat("zstd: ", ZSTD_getErrorName(size)));
  out.shrink(size);
  return out;
}

void decode_lz4_block(std::span<const std::byte> stored, std::span<std::byte> out) {
  const int size = LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(out.data()),
                                       as_int(stored.size(), "an lz4 block"), as_int(out.size(), "an lz4 block"));
  if (size < 0 || static_cast<size_t>(size) != out.size()) fail_codec("lz4: a damaged block");
}

size_t encode_lz4_block(std::span<const std::byte> values, std::span<std::byte> out) {
  const int size = LZ4_compress_default(reinterpret_cast<const char*>(values.data()), reinterpret_cast<char*>(out.data()),
                                        as_int(values.size(), "an lz4 block"), as_int(out.size(), "an lz4 block"));
  return size > 0 ? static_cast<size_t>(size) : 0;  // 0: it did not fit
}

size_t decode_lz4(std::span<const std::byte> stored, std::span<std::byte> out) {
  if (stored.size() < kCrcBytes) fail_codec("lz4: no length");
  const size_t size = little_u32(stored.data());
  if (size > out.size()) fail_codec(cat("lz4: it declares ", size, " bytes where ", out.size(), " are expected"));
  decode_lz4_block(stored.subspan(4), out.first(size));
  return size;
}

ByteBuffer encode_lz4(std::span<const std::byte> values) {
  ByteBuffer out(4 + static_cast<size_t>(LZ4_compressBound(as_int(values.size(), "a chunk"))));
  put_little_u32(out.data(), static_cast<uint32_t>(values.size()));
  out.shrink(4 + encode_lz4_block(values, out.span().subspan(4)));
  return out;
}

constexpr size_t kLz4BlocksHeader = 12;
constexpr size_t kLz4BlockBytes = size_t{1} << 20;

// 8 bytes of length, 4 of block length; then for each block 4 bytes of stored length and the block. A block that did not shrink
// is stored as it is.
size_t decode_lz4_blocks(std::span<const std::byte> stored, std::span<std::byte> out) {
  if (stored.size() < kLz4BlocksHeader) fail_codec("lz4: no header");
  const uint64_t size = read_big_endian(stored.first(8)), block = read_big_endian(stored.subspan(8, 4));
  if (size > out.size()) fail_codec(cat("lz4: it declares ", size, " bytes where ", out.size(), " are expected"));
  if (block == 0 && size > 0) fail_codec("lz4: blocks of no bytes");
  stored = stored.subspan(kLz4BlocksHeader);
  for (size_t done = 0; done < size;) {
    const size_t want = std::min<size_t>(block, size - done);
    if (stored.size() < 4) fail_codec("lz4: it ends too early");
    const size_t length = read_big_endian(stored.first(4));
    stored = stored.subspan(4);
    if (length > stored.size()) fail_codec("lz4: it ends inside a block");
    const auto to = out.subspan(done, want);
    if (length == want) {
      std::memcpy(to.data(), stored.data(), want);
    } else {
      decode_lz4_block(stored.first(length), to);
    }
    stored = stored.subspan(length);
    done += want;
  }
  return size;
}

ByteBuffer encode_lz4_blocks(std::span<const std::byte> values) {
  const size_t num_blocks = (values.size() + kLz4BlockBytes - 1) / kLz4BlockBytes;
  ByteBuffer out(kLz4BlocksHeader + values.size() + 4 * num_blocks);
  put_big_endian(out.data(), 8, values.size());
  put_big_endian(out.data() + 8, 4, std::min(kLz4BlockBytes, std::max<size_t>(values.size(), 1)));
  size_t to = kLz4BlocksHeader;
  while (!values.empty()) {
    const auto block = values.first(std::min(kLz4BlockBytes, values.size()));
    size_t length = block.size() < 2 ? 0 : encode_lz4_block(block, out.span().subspan(to + 4, block.size() - 1));
    if (length == 0) {
      length = block.size();
      std::memcpy(out.data() + to + 4, block.data(), length);
    }
    put_big_endian(out.data() + to, 4, length);
    to += 4 + length;
    values = values.subspan(block.size());
  }
  out.shrink(to);
  return out;
}

// Byte 2 of the frame: bits 5 to 7 say which compressor is inside; 1 is lz4, 2 is snappy.
constexpr unsigned kBloscSnappy = 2;

size_t decode_blosc(std::span<const std::byte> stored, std::span<std::byte> out) {
  if (stored.size() < BLOSC_MIN_HEADER_LENGTH) fail_codec("blosc: no header");
  if (std::to_integer<unsigned>(stored[2]) >> 5 == kBloscSnappy) fail_codec("blosc: snappy inside, which is not supported");
  const size_t declared = little_u32(stored.data() + 12);
  if (declared > stored.size())
    fail_codec(cat("blosc: it ends too early, bytes_expected=", declared, ", bytes_found=", stored.size()));
  size_t size = 0;
  if (blosc_cbuffer_validate(stored.data(), stored.size(), &size) < 0) fail_codec("blosc: an impossible header");
  if (size > out.size()) fail_codec(cat("blosc: it declares ", size, " bytes where ", out.size(), " are expected"));
  if (size == 0) return 0;
  const int code = blosc_decompress_ctx(stored.data(), out.data(), size, 1);
  if (code < 0 || static_cast<size_t>(code) != size) fail_codec("blosc: damaged data");
  return size;
}

ByteBuffer encode_blosc(const Codec& codec, std::span<const std::byte> values) {
  as_int(values.size() + BLOSC_MAX_OVERHEAD, "a chunk");
  ByteBuffer out(values.size() + BLOSC_MAX_OVERHEAD);
  const int size = blosc_compress_ctx(codec.level, codec.shuffle, codec.width, values.size(), values.data(), out.data(),
                                      out.size(), codec.compressor.c_str(), 0, 1);
  if (size <= 0) fail_codec(cat("blosc refuses its settings: compressor=", codec.compressor, ", level=", codec.level));
  out.shrink(static_cast<size_t>(size));
  return out;
}

// Bytes behind the last whole value stay where they are.
ByteBuffer shuffle_bytes(std::span<const std::byte> in, size_t width, bool undo) {
  ByteBuffer out(in.size());
  const size_t count = width == 0 ? 0 : in.size() / width;
  for (size_t b = 0; b < width; ++b) {
    for (size_t i = 0; i < count; ++i) {
      if (undo) {
        out.data()[i * width + b] = in[b * count + i];
      } else {
        out.data()[b * count + i] = in[i * width + b];
      }
    }
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(count * width), in.end(), out.data() + count * width);
  return out;
}

ByteBuffer checked_bytes(std::span<const std::byte> stored) {
  if (stored.size() < kCrcBytes) fail_codec("crc32c: no checksum");
  const auto values = stored.first(stored.size() - kCrcBytes);
  if (crc32c(values) != little_u32(stored.data() + values.size())) fail_codec("crc32c: the checksum does not fit");
  ByteBuffer out(values.size());
  std::ranges::copy(values, out.data());
  return out;
}

ByteBuffer with_checksum(std::span<const std::byte> values) {
  ByteBuffer out(values.size() + kCrcBytes);
  std::ranges::copy(values, out.data());
  put_little_u32(out.data() + values.size(), crc32c(values));
  return out;
}

constexpr std::array<uint32_t, 256> make_crc32c_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);  // Castagnoli, reflected
    table[i] = value;
  }
  return table;
}

// Most bytes before a codec is undone, when `most` bytes remain in the end: compressors add little to
// data that does not shrink.
size_t most_stored(size_t most) { return most + most / 64 + 4096; }

}  // namespace

std::string codec_name(const Codec& codec) {
  switch (codec.kind) {
    case CodecKind::Zlib:
      return "zlib";
    case CodecKind::Gzip:
      return "gzip";
    case CodecKind::Zstd:
      return "zstd";
    case CodecKind::Lz4:
    case CodecKind::Lz4Blocks:
      return "lz4";
    case CodecKind::Blosc:
      return cat("blosc(", codec.compressor, ")");
    case CodecKind::Shuffle:
      return "shuffle";
    case CodecKind::Crc32c:
      return "crc32c";
  }
  return "";
}

uint32_t crc32c(std::span<const std::byte> bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_crc32c_table();
  uint32_t value = 0xFFFFFFFFu;
  for (const std::byte byte : bytes) value = kTable[(value ^ std::to_integer<uint32_t>(byte)) & 255] ^ (value >> 8);
  return ~value;
}

size_t decode_into(const Codec& codec, std::span<const std::byte> stored, std::span<std::byte> out) {
  switch (codec.kind) {
    case CodecKind::Zstd:
      return decode_zstd(stored, out);
    case CodecKind::Lz4:
      return decode_lz4(stored, out);
    case CodecKind::Lz4Blocks:
      return decode_lz4_blocks(stored, out);
    case CodecKind::Blosc:
      return decode_blosc(stored, out);
    default:
      break;
  }
  const ByteBuffer decoded = decode(codec, stored, out.size());
  if (decoded.size() > out.size()) fail_codec(cat("it holds ", decoded.size(), " bytes where ", out.size(), " are expected"));
  std::ranges::copy(decoded.span(), out.data());
  return decoded.size();
}

ByteBuffer decode(const Codec& codec, std::span<const std::byte> stored, size_t most) {
  switch (codec.kind) {
    case CodecKind::Zlib:
    case CodecKind::Gzip:
      return inflate_all(stored, most);
    case CodecKind::Shuffle:
      return shuffle_bytes(stored, codec.width, true);
    case CodecKind::Crc32c:
      return checked_bytes(stored);
    default:
      break;
  }
  ByteBuffer out(most);
  out.shrink(decode_into(codec, stored, out.span()));
  return out;
}

ByteBuffer encode(const Codec& codec, std::span<const std::byte> values) {
  switch (codec.kind) {
    case CodecKind::Zlib:
    case CodecKind::Gzip:
      return deflate_all(values, codec.level, codec.kind == CodecKind::Gzip);
    case CodecKind::Zstd:
      return encode_zstd(values, codec.level);
    case CodecKind::Lz4:
      return encode_lz4(values);
    case CodecKind::Lz4Blocks:
      return encode_lz4_blocks(values);
    case CodecKind::Blosc:
      return encode_blosc(codec, values);
    case CodecKind::Shuffle:
      return shuffle_bytes(values, codec.width, false);
    case CodecKind::Crc32c:
      return with_checksum(values);
  }
  fail_codec("an unknown codec");
}

ByteBuffer decode_chunk(std::span<const Codec> codecs, std::span<const std::byte> stored, size_t expected,
                        std::string_view source) {
  ByteBuffer bytes;
  std::span<const std::byte> now = stored;
  const auto refuse = [&](std::string_view reason) {
    throw DataError("data", cat("a chunk cannot be decoded: path=", source, ", reason=", reason),
                    "The file is damaged: restore or make it again");
  };
  try {
    for (size_t i = codecs.size(); i-- > 0;) {
      bytes = decode(codecs[i], now, i == 0 ? expected : most_stored(expected));
      now = bytes.span();
    }
  } catch (const CodecFailure& failure) {
    refuse(failure.reason);
  }
  if (now.size() != expected) refuse(cat("bytes_expected=", expected, ", bytes_found=", now.size()));
  if (!codecs.empty()) return bytes;
  ByteBuffer copy(stored.size());
  std::ranges::copy(stored, copy.data());
  return copy;
}

ByteBuffer encode_chunk(std::span<const Codec> codecs, std::span<const std::byte> values) {
  ByteBuffer bytes(values.size());
  std::ranges::copy(values, bytes.data());
  try {
    for (const Codec& codec : codecs) bytes = encode(codec, bytes.span());
  } catch (const CodecFailure& failure) {
    throw DataError("data", cat("a chunk cannot be compressed: reason=", failure.reason),
                    "Choose another --compress or smaller chunks");
  }
  return bytes;
}

}  // namespace welkin::data
