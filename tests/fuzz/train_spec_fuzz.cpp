// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the specification of the data in a model package and in an exported state. No text may crash its reader, and what is
// accepted is written as the same specification.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "train/interchange/sample_spec_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace interchange = welkin::train::interchange;
  const interchange::SpecSource source{.path = "fuzz", .component = "fuzz", .remedy = "none"};
  try {
    const auto spec = interchange::sample_spec_from_json({reinterpret_cast<const char*>(data), size}, source);
    const std::string text = interchange::sample_spec_json(spec);
    if (interchange::sample_spec_json(interchange::sample_spec_from_json(text, source)) != text) std::abort();
  } catch (const welkin::DataError&) {  // the one legal way to refuse
  }
  return 0;
}
