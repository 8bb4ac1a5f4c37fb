// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no bytes of a DeepSpeed JSON may make its reader crash, hang or throw anything but a ConfigError; and what is
// accepted sets keys of ours alone.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/deepspeed/ds_config.h"
#include "config/schema/key.h"
#include "core/error.h"

namespace {

namespace config = welkin::config;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    config::Problems problems;
    const auto read = config::read_ds_config(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz", problems);
    problems.throw_if_any();
    for (const config::DsSetting& setting : read.settings) {
      if (config::find_key(setting.path) == nullptr) std::abort();
    }
  } catch (const welkin::ConfigError&) {  // the one legal way to refuse
  }
  return 0;
}
