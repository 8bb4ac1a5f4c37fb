// SPDX-License-Identifier: Apache-2.0
// `welkin doctor`: the verb's row. The executable (apps/launcher.cpp) runs it before torch is loaded, so this is reached only
// if another program calls welkin_main.
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/argument_help.h"
#include "apps/cli/verbs.h"
#include "config/help/option.h"
#include "launch/doctor/doctor_command.h"
#include "parallel/elastic/store_board.h"

namespace welkin::apps {

namespace {

void record_doctor(config::VerbHelp& answer) {
  answer.arguments = "[options] [PATH...]";
  for (const launch::LaunchOption& option : launch::doctor_options()) answer.options.push_back(described_option(option));
}

}  // namespace

int verb_doctor(Application& application, int argc, char** argv) {
  if (application.recorded != nullptr) {
    record_doctor(*application.recorded);
    return 0;
  }
  const launch::DoctorArguments arguments = launch::parse_doctor(std::vector<std::string>(argv + 1, argv + argc));
  if (arguments.help) {
    application.out << launch::doctor_help();
    return 0;
  }
  return launch::run_doctor(arguments, {}, std::filesystem::canonical("/proc/self/exe"), application.options,
                            parallel::make_store_board);
}

}  // namespace welkin::apps
