// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no bytes may make the safetensors reader crash, hang, or hand out a span outside of the file.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/archive/safetensors.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  try {
    const auto header = welkin::parse_safetensors(file, "fuzz");
    for (const auto& [name, info] : header.tensors) {
      if (info.begin > info.end || header.data_offset + info.end > size) std::abort();
    }
  } catch (const welkin::DataError&) {  // the one legal way to refuse
  }
  return 0;
}
