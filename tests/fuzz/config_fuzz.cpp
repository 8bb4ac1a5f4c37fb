// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no YAML may make the resolution of a configuration crash, hang or throw anything but a
// ConfigError; and what is accepted prints to YAML that loads to the same configuration. The parser alone: yaml_fuzz.cpp.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/print/print.h"
#include "config/resolve/resolve.h"
#include "config/yaml/yaml_document.h"
#include "core/error.h"

namespace {

namespace config = welkin::config;

// What we print ourselves must load: an error there is a bug.
bool prints_and_loads(const config::RunConfig& first) {
  try {
    return config::from_yaml(config::yaml(first), "printed", 4) == first;
  } catch (const welkin::ConfigError&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto first = config::from_yaml(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz", 4);
    if (!prints_and_loads(first)) std::abort();
  } catch (const welkin::ConfigError&) {  // the one legal way to refuse
  }
  return 0;
}
