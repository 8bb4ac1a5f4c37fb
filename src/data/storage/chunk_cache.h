// SPDX-License-Identifier: Apache-2.0
// Decoded chunks that were used last, up to a number of bytes, for all reading threads and all files of a data set. A time step
// that is a target now and an input soon is decoded once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "data/storage/codec.h"

namespace welkin::data {

// Bytes of a data set's cache: the steps of a few batches.
inline constexpr size_t kChunkCacheBytes = size_t{256} << 20;

class ChunkCache {
 public:
  using Chunk = std::shared_ptr<const ByteBuffer>;
  struct Key {
    int64_t array = 0;  // the array of the chunk, by new_array()
    int64_t chunk = 0;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy sees the comparison with 0 inside
  };

  explicit ChunkCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  // A number for an array that keeps its chunks here. Not its address, which comes back when the array is gone: the next one
  // there would find the chunks of another file.
  int64_t new_array() { return num_arrays_++; }
  Chunk find(const Key& key);  // null where it is not held
  // If two threads decoded a chunk at once, one copy is kept. One larger than the cache is not kept.
  void insert(const Key& key, Chunk chunk);
  size_t held_bytes() const;

 private:
  struct Entry {
    Chunk chunk;
    std::list<Key>::iterator place;
  };

  const size_t most_bytes_;
  std::atomic<int64_t> num_arrays_ = 0;
  mutable std::mutex mutex_;
  std::list<Key> order_;  // the most recently used one in front
  std::map<Key, Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace welkin::data
