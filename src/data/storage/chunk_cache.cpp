// SPDX-License-Identifier: Apache-2.0
#include "data/storage/chunk_cache.h"

namespace welkin::data {

ChunkCache::Chunk ChunkCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {};
  order_.splice(order_.begin(), order_, found->second.place);
  return found->second.chunk;
}

void ChunkCache::insert(const Key& key, Chunk chunk) {
  const size_t bytes = chunk->size();
  if (bytes > most_bytes_) return;
  const std::lock_guard lock(mutex_);
  if (entries_.contains(key)) return;
  while (bytes_ + bytes > most_bytes_) {
    const auto oldest = entries_.find(order_.back());
    bytes_ -= oldest->second.chunk->size();
    entries_.erase(oldest);
    order_.pop_back();
  }
  order_.push_front(key);
  entries_.emplace(key, Entry{std::move(chunk), order_.begin()});
  bytes_ += bytes;
}

size_t ChunkCache::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace welkin::data
