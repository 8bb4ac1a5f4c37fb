// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no text may make the parsers of Zarr's metadata (version 3 where the first byte is odd, else 2) crash, hang or throw
// anything but a DataError or a refusal; what is accepted has a chunk along every axis. From 128 on the array is one of texts,
// and from 192 on the rest is a chunk of such an array.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "data/formats/zarr/zarr_array.h"
#include "data/formats/zarr/zarr_metadata.h"

namespace {

using namespace welkin::data;

void read_array(bool is_third, const Json& json) {
  const ZarrArray array = is_third ? parse_zarr3_array(json, "fuzz") : parse_zarr2_array(json.dump(), {}, "fuzz");
  if (array.chunk.size() != array.shape.size() || array.decoded_chunk().size() != array.shape.size()) std::abort();
  for (size_t d = 0; d < array.shape.size(); ++d) {
    if (array.shape[d] < 0 || array.chunk[d] < 1 || array.decoded_chunk()[d] < 1) std::abort();
  }
  if (zarr_chunk_bytes(array.decoded_chunk(), array.dtype, "fuzz") > kMostDecodedBytes) std::abort();
}

// As the opener does with what is no array of numbers.
void read_texts(const Json& json) {
  const bool is_third = !json.contains("dtype");
  if (const auto texts = long_text_metadata(json)) return read_array(is_third, texts->metadata);
  if (const auto characters = text_array_metadata(json)) read_array(is_third, *characters);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] >= 192) {
      (void)long_texts_in(std::as_bytes(std::span(text)), data[0] % 8, "fuzz");
    } else if (data[0] >= 128) {
      read_texts(parse_json(text, "fuzz"));
    } else {
      read_array(data[0] % 2 == 1, parse_json(text, "fuzz"));
    }
  } catch (const welkin::DataError&) {  // the two legal ways to refuse
  } catch (const ZarrRefusal&) {
  }
  return 0;
}
