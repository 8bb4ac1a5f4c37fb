// SPDX-License-Identifier: Apache-2.0
// The metadata of a Zarr array: version 2 (.zarray) and version 3 (zarr.json). Torch-free; the text is hostile.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/json_values.h"
#include "data/storage/codec.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

// The steps from the values of a chunk to its bytes: values in the order of `order` and of this byte order, then codecs.
struct ZarrEncoding {
  std::vector<size_t> order;  // encoded axis i is axis order[i]; empty: as they are
  bool big_endian = false;
  std::vector<Codec> codecs;
};

// Several chunks in one file: their encoding, and that of the index.
struct ZarrShard {
  Extents inner_chunk;
  ZarrEncoding inner;
  bool index_has_checksum = false;
  bool index_at_start = false;
};

struct ZarrArray {
  int version = 2;
  Extents shape;
  Extents chunk;  // one file each; with a shard, that is the shard
  Dtype dtype = Dtype::F32;
  ZarrEncoding encoding;  // not used with a shard
  std::optional<ZarrShard> shard;
  std::optional<double> fill;  // of chunks without a file; none: they have to be there, but for a lone 0
  char separator = '.';
  bool has_prefix = false;  // chunk files are c/0/1, not 0/1
  bool is_text = false;     // the last axis is that of characters: it has no number in the names of chunk files
  std::vector<std::string> axes;
  Attributes attributes;

  const Extents& decoded_chunk() const { return shard ? shard->inner_chunk : chunk; }
  // "c/0/3", "0.3"
  std::string chunk_file(const Extents& index) const;
};

// The reason why an array cannot be read (a type that is no number, an unknown codec). Broken metadata is a DataError.
struct ZarrRefusal {
  std::string reason;
};

inline constexpr uint64_t kMaxZarrMetadataBytes = uint64_t{64} << 20;

// An array of texts of fixed length as one of characters, along one axis more. Empty for arrays of other types.
std::optional<Json> text_array_metadata(const Json& json);
// The texts of such an array, in UTF-8, without their padding.
std::vector<std::string> texts_of(const StoredArray& characters);

// `attributes` are those of .zattrs. Throws ZarrRefusal and DataError.
ZarrArray parse_zarr2_array(std::string_view text, const Attributes& attributes, std::string_view source);
ZarrArray parse_zarr3_array(const Json& json, std::string_view source);

// Bytes of a chunk of that shape; DataError when it is larger than kMostDecodedBytes.
size_t zarr_chunk_bytes(const Extents& chunk, Dtype dtype, std::string_view source);

}  // namespace welkin::data
