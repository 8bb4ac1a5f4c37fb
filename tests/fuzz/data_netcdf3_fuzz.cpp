// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the look at a netCDF-3 header ends quickly for any bytes and reads none beyond them.
#include <cstdint>
#include <span>

#include "data/ingest/source/netcdf3_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  // As if values followed that the fuzzer need not write: the sizes in the header then are what is tested.
  for (const uint64_t bytes : {uint64_t{size}, uint64_t{size} + (uint64_t{1} << 40)}) {
    if (welkin::data::ingest::netcdf3_problem(file, bytes).size() > 1000) __builtin_trap();
  }
  return 0;
}
