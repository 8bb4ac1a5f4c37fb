// SPDX-License-Identifier: Apache-2.0
// A chunked, perhaps compressed data set of an HDF5 file, read by any number of threads at once. The library and its lock are
// used only to find each chunk, once. The calling thread reads a chunk's bytes positionally and decodes them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/formats/hdf5/hdf5_file.h"
#include "data/storage/chunk_cache.h"
#include "data/storage/chunk_filters.h"
#include "data/storage/stored_array.h"
#include "data/storage/stored_values.h"
#include "data/storage/watched_file.h"

namespace welkin::data {

// The place of a chunk in the file. `bytes` 0: it was never written, its values are the fill value.
struct ChunkPlace {
  uint64_t offset = 0;
  uint32_t bytes = 0;
  uint32_t filter_mask = 0;
};

// Chunks and filters of a data set, if we can decode it: all its filters are those of chunk_filters.h.
struct ChunkLayout {
  Extents shape, chunk;
  ChunkPipeline pipeline;
  std::vector<std::byte> fill;  // one value, as stored
};

class Hdf5Chunks {
 public:
  // `file` and `bytes` are the same file; `cache` may be shared with other arrays.
  Hdf5Chunks(std::shared_ptr<const Hdf5File> file, std::shared_ptr<const WatchedFile> bytes, std::string dataset,
             ChunkLayout layout, std::shared_ptr<ChunkCache> cache);

  // True if a layout's table of places and its chunks are small enough to hold in memory; else the library reads.
  static bool can_hold(const ChunkLayout& layout);

  uint64_t bytes_requested() const { return bytes_->bytes_requested(); }
  // The region lies inside and is not empty. DataError naming file, data set, chunk and offset.
  void read(const ArrayRegion& region, StoredType type, const ValueTarget& target) const;

 private:
  std::vector<ChunkPlace> find_places(const std::vector<int64_t>& chunks) const;
  ChunkCache::Chunk chunk(int64_t number, const ChunkPlace& place) const;
  void decode(int64_t number, const ChunkPlace& place, std::span<std::byte> out) const;
  Extents first_cell(int64_t number) const;

  std::shared_ptr<const Hdf5File> file_;
  std::shared_ptr<const WatchedFile> bytes_;
  std::string dataset_;
  ChunkLayout layout_;
  Extents grid_;  // chunks along each axis
  std::shared_ptr<ChunkCache> cache_;
  int64_t cache_number_;                    // of this array in the cache
  mutable std::mutex mutex_;                // of the two below
  mutable std::vector<ChunkPlace> places_;  // by chunk number, row-major in the grid
  mutable std::vector<bool> known_;
};

}  // namespace welkin::data
