// SPDX-License-Identifier: Apache-2.0
#include "launch/plugin.h"

#include <dlfcn.h>

#include "core/error.h"
#include "core/text.h"

namespace welkin::launch {

void* load_plugin(const std::filesystem::path& path, const char* symbol) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw ConfigError("plugin", cat("there is no such file: plugin=", path.string()), "Give the path of a shared object");
  }
  const auto absolute = std::filesystem::absolute(path);  // a bare name would be searched for in the system's folders
  void* handle = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw ConfigError("plugin", cat("cannot be loaded: plugin=", path.string(), ", reason=", dlerror()),
                      "Build it with welkin_add_plugin() of the same Welkin");
  }
  void* address = dlsym(handle, symbol);
  if (address == nullptr) {
    throw ConfigError("plugin", cat("has no entry point: plugin=", path.string(), ", symbol=", symbol),
                      cat("Define extern \"C\" void ", symbol, "(welkin::train::Registries&)"));
  }
  return address;
}

}  // namespace welkin::launch
