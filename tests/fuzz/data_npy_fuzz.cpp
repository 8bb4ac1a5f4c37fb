// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no bytes may make the reader of npy headers crash, hang or throw anything but a DataError; a header that is accepted
// describes exactly the bytes that follow it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/error.h"
#include "data/formats/npy_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  try {
    const auto header = welkin::data::parse_npy_header(file.first(std::min(size, welkin::data::kNpyHeadBytes)), size, "fuzz");
    const uint64_t bytes = static_cast<uint64_t>(header.num_values()) * welkin::dtype_bytes(header.dtype);
    if (header.data_offset > size || bytes != size - header.data_offset) std::abort();
    for (const int64_t extent : header.shape) {
      if (extent < 0) std::abort();
    }
  } catch (const welkin::DataError&) {  // the one legal way to refuse
  }
  return 0;
}
