// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the first byte names a codec of chunks (blosc frames, lz4 blocks, ...) or the index of a shard; no bytes may make it
// crash, hang or give more than it may.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "data/formats/zarr/zarr_array.h"
#include "data/storage/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace welkin::data;
  constexpr size_t kMost = 1 << 16;  // it is allocated each time
  if (size == 0) return 0;
  const auto stored = std::as_bytes(std::span(data, size)).subspan(1);
  const unsigned kind = data[0] % 9;
  try {
    if (kind == 8) {
      for (const ShardPlace& place : parse_shard_index(stored, data[0] > 127, kMost)) {
        if (place.size > kMost || place.offset > kMost - place.size) std::abort();
      }
    } else if (decode({.kind = static_cast<CodecKind>(kind), .width = 4}, stored, kMost).size() > kMost + stored.size()) {
      std::abort();
    }
  } catch (const CodecFailure&) {  // the one legal way to refuse
  }
  return 0;
}
