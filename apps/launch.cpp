// SPDX-License-Identifier: Apache-2.0
// `welkin launch`: the verb's row. The executable (apps/launcher.cpp) runs it before torch is loaded, so this is reached only
// if another program calls welkin_main.
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/argument_help.h"
#include "apps/cli/verbs.h"
#include "config/help/option.h"
#include "launch/launch_command.h"
#include "parallel/elastic/store_board.h"

namespace welkin::apps {

namespace {

void record_launch(config::VerbHelp& answer) {
  answer.arguments = "-n N [options] -- VERB [arguments]";
  answer.starts_verb = true;
  for (const launch::LaunchOption& option : launch::launch_options()) answer.options.push_back(described_option(option));
}

}  // namespace

int verb_launch(Application& application, int argc, char** argv) {
  if (application.recorded != nullptr) {
    record_launch(*application.recorded);
    return 0;
  }
  const launch::LaunchArguments arguments = launch::parse_launch(std::vector<std::string>(argv + 1, argv + argc));
  if (arguments.help) {
    application.out << launch::launch_help();
    return 0;
  }
  return launch::run_launch(arguments, std::filesystem::canonical("/proc/self/exe"), {}, parallel::make_store_board);
}

}  // namespace welkin::apps
