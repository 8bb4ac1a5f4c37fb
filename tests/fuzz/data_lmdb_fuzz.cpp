// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no bytes may make the reader of lmdb indices crash, hang, read outside of the file, or name a value that lies
// outside of it.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "core/error.h"
#include "data/formats/lmdb_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read_at = [&](uint64_t offset, std::span<std::byte> out) {
    if (offset > size || out.size() > size - offset) std::abort();
    std::memcpy(out.data(), data + offset, out.size());
  };
  try {
    for (const auto& entry : welkin::data::read_lmdb_index(read_at, size, "fuzz")) {
      if (entry.offset > size || entry.size > size - entry.offset) std::abort();
    }
  } catch (const welkin::DataError&) {  // the one legal way to refuse
  }
  return 0;
}
