// SPDX-License-Identifier: Apache-2.0
#include "data/formats/hdf5/hdf5_filters.h"

#include <hdf5.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace welkin::data {
namespace {

constexpr std::array<std::string_view, 6> kBloscCompressors{"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};

// Bytes of a chunk after decoding, by its own header.
size_t declared_bytes(const Codec& codec, std::span<const std::byte> stored) {
  uint64_t size = 0;
  if (codec.kind == CodecKind::Zstd) {
    size = ZSTD_getFrameContentSize(stored.data(), stored.size());
    if (size == ZSTD_CONTENTSIZE_ERROR) throw CodecFailure{"zstd: no frame"};
    if (size == ZSTD_CONTENTSIZE_UNKNOWN) throw CodecFailure{"zstd: a frame that does not say its size"};
  } else if (codec.kind == CodecKind::Blosc) {
    uint32_t value = 0;
    if (stored.size() >= 16) std::memcpy(&value, stored.data() + 4, sizeof(value));
    size = value;
  } else {
    for (size_t i = 0; i < std::min<size_t>(8, stored.size()); ++i) size = (size << 8) | std::to_integer<uint64_t>(stored[i]);
  }
  if (size > kMostDecodedBytes) throw CodecFailure{"it declares more than 2 GiB"};
  return static_cast<size_t>(size);
}

// HDF5's filter function: 0 is a failure, whose reason is put on its error stack; *buffer is replaced.
size_t run_filter(int filter, unsigned flags, size_t num_parameters, const unsigned* parameters, size_t num_bytes,
                  size_t* capacity, void** buffer) {
  try {
    const std::span<const std::byte> in(static_cast<const std::byte*>(*buffer), num_bytes);
    const auto codec = codec_of_hdf5_filter(filter, {parameters, num_parameters}, 1);
    if (!codec) return 0;
    const bool decoding = (flags & H5Z_FLAG_REVERSE) != 0;
    const ByteBuffer out = decoding ? decode(*codec, in, declared_bytes(*codec, in)) : encode(*codec, in);
    void* copy = H5allocate_memory(std::max<size_t>(out.size(), 1), false);
    if (copy == nullptr) return 0;
    std::memcpy(copy, out.data(), out.size());
    H5free_memory(*buffer);
    *buffer = copy;
    *capacity = out.size();
    return out.size();
  } catch (const CodecFailure& failure) {
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_PLINE, H5E_CANTFILTER, "%s", failure.reason.c_str());
  } catch (const std::bad_alloc&) {
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_PLINE, H5E_CANTFILTER, "no memory for a chunk");
  }
  return 0;
}

template <int Filter>
size_t filter_function(unsigned flags, size_t num_parameters, const unsigned* parameters, size_t num_bytes, size_t* capacity,
                       void** buffer) {
  return run_filter(Filter, flags, num_parameters, parameters, num_bytes, capacity, buffer);
}

template <int Filter>
void register_filter(const char* name) {
  const H5Z_class2_t row{H5Z_CLASS_T_VERS, Filter, 1, 1, name, nullptr, nullptr, filter_function<Filter>};
  H5Zregister(&row);
}

}  // namespace

void register_hdf5_filters() {
  register_filter<kHdf5Blosc>("blosc");
  register_filter<kHdf5Lz4>("lz4");
  register_filter<kHdf5Zstd>("zstd");
}

std::optional<Codec> codec_of_hdf5_filter(int filter, std::span<const unsigned> parameters, size_t width) {
  Codec codec{.width = width};
  if (filter == kHdf5Zstd) {
    codec.kind = CodecKind::Zstd;
    if (!parameters.empty()) codec.level = static_cast<int>(parameters[0]);
    return codec;
  }
  if (filter == kHdf5Lz4) {
    codec.kind = CodecKind::Lz4Blocks;
    return codec;
  }
  if (filter != kHdf5Blosc) return std::nullopt;
  codec.kind = CodecKind::Blosc;
  if (parameters.size() > 2) codec.width = parameters[2];
  if (parameters.size() > 4) codec.level = static_cast<int>(parameters[4]);
  if (parameters.size() > 5) codec.shuffle = static_cast<int>(parameters[5]);
  codec.compressor =
      parameters.size() > 6 && parameters[6] < kBloscCompressors.size() ? kBloscCompressors[parameters[6]] : "blosclz";
  return codec;
}

Hdf5FilterSettings hdf5_filter_of(const Codec& codec, size_t chunk_bytes) {
  if (codec.kind == CodecKind::Zstd) return {kHdf5Zstd, {static_cast<unsigned>(codec.level)}};
  if (codec.kind == CodecKind::Lz4Blocks) return {kHdf5Lz4, {}};
  WELKIN_CHECK(codec.kind == CodecKind::Blosc, "a codec that is no HDF5 filter of ours");
  const auto* found = std::ranges::find(kBloscCompressors, codec.compressor);
  const auto compressor = static_cast<unsigned>(found - kBloscCompressors.begin());
  // Revision of the filter, version of the frame, width, bytes, level, shuffle, compressor: as the reference plug-in stores them.
  return {kHdf5Blosc,
          {2, 2, static_cast<unsigned>(codec.width), static_cast<unsigned>(chunk_bytes), static_cast<unsigned>(codec.level),
           static_cast<unsigned>(codec.shuffle), compressor}};
}

}  // namespace welkin::data
