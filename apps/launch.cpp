// SPDX-License-Identifier: Apache-2.0
// `welkin launch`: the verb's row. The executable (apps/launcher.cpp) runs it before torch is loaded, so this is reached only
// where somebody calls welkin_main by other means.
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/verbs.h"
#include "launch/launch_command.h"

namespace welkin::apps {

int verb_launch(Application& application, int argc, char** argv) {
  const launch::LaunchArguments arguments = launch::parse_launch(std::vector<std::string>(argv + 1, argv + argc));
  if (arguments.help) {
    application.out << launch::launch_help();
    return 0;
  }
  return launch::run_launch(arguments, std::filesystem::canonical("/proc/self/exe"), {});
}

}  // namespace welkin::apps
