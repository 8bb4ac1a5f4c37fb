// SPDX-License-Identifier: Apache-2.0
// What a user reads when a plug-in cannot be used. A plug-in that can is built and run in tests/e2e.
#include "launch/plugin.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"

namespace welkin::launch {
namespace {

std::string plugin_error(const std::filesystem::path& path) {
  try {
    load_plugin(path, "welkin_register");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Plugin, AbsentFileIsNamed) {
  EXPECT_EQ(plugin_error("/no/such/plugin.so"),
            "[plugin] there is no such file: plugin=/no/such/plugin.so. Give the path of a shared object.");
}

TEST(Plugin, FileThatIsNoSharedObjectGivesTheLoadersReason) {
  const auto path = std::filesystem::path(testing::TempDir()) / "not_a_plugin.so";
  std::ofstream(path) << "text";
  EXPECT_THAT(plugin_error(path), testing::AllOf(testing::HasSubstr("cannot be loaded: plugin="), testing::HasSubstr("reason=")));
}

TEST(Plugin, SharedObjectWithoutEntryPointIsRefused) {
  Dl_info libc{};
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "fputs"), &libc), 0);
  EXPECT_THAT(plugin_error(libc.dli_fname), testing::HasSubstr("has no entry point: plugin="));
}

}  // namespace
}  // namespace welkin::launch
