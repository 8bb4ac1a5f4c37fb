// SPDX-License-Identifier: Apache-2.0
// libFuzzer: chunks of HDF5 as we undo their filters ourselves. The first bytes say which filters, in which order, and how large
// the chunk is; the rest is stored. No bytes may crash it, nor a chunk have another size than the data set says.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "data/storage/chunk_filters.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace welkin::data;
  constexpr size_t kHead = 4;
  if (size < kHead) return 0;
  constexpr std::array kFilters{ChunkFilter::Shuffle, ChunkFilter::Deflate, ChunkFilter::Fletcher32, ChunkFilter::Compressed};
  ChunkPipeline pipeline;
  for (unsigned i = 0, left = bytes[0]; i < 3; ++i, left /= 5) {
    if (left % 5 == 4) continue;
    pipeline.filters.push_back(
        {.filter = kFilters[left % 5], .codec = {.kind = static_cast<CodecKind>(bytes[1] % 8), .width = 4}});
  }
  pipeline.element_bytes = bytes[2] % 17;
  const uint32_t mask = bytes[1] / 32;
  std::vector<std::byte> out((size_t{bytes[3]} + 1) * 4);
  const auto stored = std::as_bytes(std::span(bytes, size)).subspan(kHead);
  ChunkScratch scratch;
  const std::string why = decode_chunk(pipeline, mask, stored, scratch, out);
  if (why.empty() && pipeline.filters.empty() && stored.size() != out.size()) std::abort();
  if (why.size() > 1000) std::abort();
  return 0;
}
