// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no text may make the parsers of Zarr's metadata (version 3 where the first byte is odd, else 2) crash, hang or throw
// anything but a DataError or a refusal; what is accepted has a chunk along every axis.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "data/formats/zarr/zarr_metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace welkin::data;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const ZarrArray array =
        data[0] % 2 == 1 ? parse_zarr3_array(parse_json(text, "fuzz"), "fuzz") : parse_zarr2_array(text, {}, "fuzz");
    if (array.chunk.size() != array.shape.size() || array.decoded_chunk().size() != array.shape.size()) std::abort();
    for (size_t d = 0; d < array.shape.size(); ++d) {
      if (array.shape[d] < 0 || array.chunk[d] < 1 || array.decoded_chunk()[d] < 1) std::abort();
    }
    if (zarr_chunk_bytes(array.decoded_chunk(), array.dtype, "fuzz") > kMostDecodedBytes) std::abort();
  } catch (const welkin::DataError&) {  // the two legal ways to refuse
  } catch (const ZarrRefusal&) {
  }
  return 0;
}
