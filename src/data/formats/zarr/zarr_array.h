// SPDX-License-Identifier: Apache-2.0
// Reading the chunks of a Zarr array. Each read opens, decodes and copies what it needs; decoded chunks are kept in a cache,
// where there is one. Any number of threads may read. Torch-free.
#pragma once

#include <filesystem>

#include "data/formats/zarr/zarr_metadata.h"
#include "data/storage/chunk_cache.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

// `folder` holds the array's metadata and chunks; `facts` have source and name. DataError when shape and chunk are unusable.
StoredArrayPtr make_zarr_array(const std::filesystem::path& folder, ZarrArray array, ArrayFacts facts,
                               std::shared_ptr<ChunkCache> cache = nullptr);

// An array of texts of any length: its metadata as an array of bytes with the same chunks and compressors, and the text of
// absent chunks. Empty for arrays of other types.
struct LongTexts {
  Json metadata;
  std::string fill;
};
std::optional<LongTexts> long_text_metadata(const Json& json);
// Texts of such an array of one dimension without shards, in UTF-8. DataError for a chunk that is damaged or beyond 4 MiB.
std::vector<std::string> long_texts_of(const std::filesystem::path& folder, const ZarrArray& array, const std::string& fill);
// The first `count` texts of a decoded chunk of it, which `path` names in errors.
std::vector<std::string> long_texts_in(std::span<const std::byte> chunk, size_t count, const std::filesystem::path& path);

// Places of the chunks of a shard, from the bytes of its index; checks the checksum and that each lies in the file. A chunk
// that was not written has size 0. Throws CodecFailure.
struct ShardPlace {
  uint64_t offset = 0, size = 0;
};
std::vector<ShardPlace> parse_shard_index(std::span<const std::byte> index, bool has_checksum, uint64_t file_bytes);

}  // namespace welkin::data
