// SPDX-License-Identifier: Apache-2.0
// The filters of HDF5's chunks that we undo ourselves, outside of the library and its lock: byte shuffle, deflate, Fletcher-32,
// and zstd, blosc and lz4, which the library leaves to plug-ins. Torch-free and free of HDF5; the bytes are hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/storage/codec.h"

namespace welkin::data {

enum class ChunkFilter { Shuffle, Deflate, Fletcher32, Compressed };

struct ChunkStep {
  ChunkFilter filter = ChunkFilter::Shuffle;
  Codec codec{};  // of Compressed
};

// The filters of a data set in the order in which a writer applies them.
struct ChunkPipeline {
  std::vector<ChunkStep> filters;
  size_t element_bytes = 4;  // the element size of the shuffle
};

// Working memory of one thread; keeps its size from chunk to chunk.
struct ChunkScratch {
  std::vector<std::byte> stored, a, b;
};

// Undoes the filters that `mask` does not except (bit i: filter i was not applied) and writes the chunk's values to `out`,
// whose size is the chunk's. Empty: done. Else the damage: "deflate: ...", "zstd: ...".
std::string decode_chunk(const ChunkPipeline& pipeline, uint32_t mask, std::span<const std::byte> stored, ChunkScratch& scratch,
                         std::span<std::byte> out);

// HDF5's variant of Fletcher's checksum, over 16-bit big-endian words.
uint32_t hdf5_fletcher32(std::span<const std::byte> bytes);

}  // namespace welkin::data
