// SPDX-License-Identifier: Apache-2.0
#include "launch/program.h"

#include <dlfcn.h>

#include "core/hash.h"

namespace welkin::launch {

std::string program_hash() {
  uint64_t hash = xxh3_64_of_file("/proc/self/exe");
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&program_hash), &info) != 0 && info.dli_fname != nullptr) {
    hash = hash * 31 + xxh3_64_of_file(info.dli_fname);
  }
  return hex_digits(hash);
}

}  // namespace welkin::launch
