// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no text may make the parser of side documents crash, hang or throw anything but a DataError.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "data/formats/sidecar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto document = welkin::data::parse_sidecar({reinterpret_cast<const char*>(data), size}, "fuzz");
    for (const auto& [name, array] : document.arrays) {
      if (array.shape && array.shape->size() > welkin::data::kMostArrayDims) std::abort();
      if (!array.shape) continue;
      welkin::data::ArrayFacts facts{
          .source = "fuzz", .name = name, .shape = *array.shape, .chunk = {}, .codecs = {}, .axes = {}, .packing = {}};
      facts.dtype = array.dtype;
      welkin::data::add_packing(array.attributes, facts);
    }
  } catch (const welkin::DataError&) {  // the one legal way to refuse
  }
  return 0;
}
