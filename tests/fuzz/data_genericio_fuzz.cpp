// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no bytes may make the reader of GenericIO headers crash, hang or throw anything but a DataError; values that it
// names lie in the file. The checksum is made right, as no fuzzer finds it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "core/error.h"
#include "data/formats/genericio/crc64.h"
#include "data/formats/genericio/genericio_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> head(std::as_bytes(std::span(data, size)).begin(), std::as_bytes(std::span(data, size)).end());
  welkin::data::Crc64 sum;
  sum.add(head);
  const uint64_t inverted = ~sum.sum();
  head.resize(size + sizeof inverted);
  std::memcpy(head.data() + size, &inverted, sizeof inverted);
  const uint64_t file_bytes = head.size() + (uint64_t{1} << 20);
  try {
    const auto header = welkin::data::parse_genericio_header(head, file_bytes, "fuzz");
    for (const auto& rank : header.ranks) {
      if (rank.offsets.size() != header.variables.size() || rank.compressed.size() != rank.offsets.size()) std::abort();
      for (size_t v = 0; v < rank.offsets.size(); ++v) {
        const auto value =
            static_cast<uint64_t>(header.variables[v].bytes) * static_cast<uint64_t>(header.variables[v].per_element);
        const uint64_t room = rank.offsets[v] > file_bytes ? 0 : file_bytes - rank.offsets[v];
        if (rank.compressed[v] > 0 ? rank.compressed[v] > room : rank.elements > room / value) std::abort();
      }
    }
  } catch (const welkin::DataError&) {  // the one legal way to refuse
  }
  return 0;
}
