// SPDX-License-Identifier: Apache-2.0
#include "launch/plugin.h"

#include <dlfcn.h>

#include <cstring>

#include "core/error.h"
#include "core/text.h"

extern "C" {
extern const char welkin_own_stamp[];  // NOLINT: its size is the linker's to know (cmake/WelkinStamp.cmake)
}

namespace welkin::launch {
namespace {

constexpr const char* kStamp = "welkin_plugin_stamp";
constexpr size_t kLongestStamp = 200;

// Checks before any function of the plug-in is called: types of the same name may have another layout there.
void check_stamp(void* handle, const std::filesystem::path& path) {
  const auto* stamp = static_cast<const char*>(dlsym(handle, kStamp));
  const std::string built_with = stamp == nullptr ? "nothing that it says" : std::string(stamp, strnlen(stamp, kLongestStamp));
  if (built_with == welkin_own_stamp) return;
  throw ConfigError(
      "plugin",
      cat("was built with another Welkin: plugin=", path.string(), ", built with: ", built_with, ", this is: ", welkin_own_stamp),
      "Build it again with welkin_add_plugin() of this one");
}

}  // namespace

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
  void* address = dlsym(handle, symbol);  // comes first: a file that is no plug-in has no stamp either
  if (address == nullptr) {
    throw ConfigError("plugin", cat("has no entry point: plugin=", path.string(), ", symbol=", symbol),
                      cat("Define extern \"C\" void ", symbol, "(welkin::train::Registries&)"));
  }
  check_stamp(handle, path);
  return address;
}

}  // namespace welkin::launch
