// SPDX-License-Identifier: Apache-2.0
// welkin completion bash|zsh|man: a script that completes this program's command lines in a shell, or its manual page.
#include "config/help/completion.h"

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>

#include "apps/cli/help.h"
#include "apps/cli/verbs.h"
#include "config/help/manual.h"

namespace welkin::apps {

int verb_completion(Application& application, int argc, char** argv) {
  CLI::App app(
      "Prints a script that completes verbs, flags, values and file names: for this shell `source <(welkin completion bash)`, "
      "for all those to come in its start-up file. man: the manual page, as in `welkin completion man | man -l -`");
  std::string what;
  app.add_option("WHAT", what, "bash, zsh or man")->required()->check(CLI::IsMember({"bash", "zsh", "man"}));
  if (!parse_arguments(application, app, argc, argv)) return 0;
  const config::ProgramHelp program = describe_program(application);
  application.out << (what == "bash"  ? config::bash_completion(program)
                      : what == "zsh" ? config::zsh_completion(program)
                                      : config::manual(program));
  return 0;
}

}  // namespace welkin::apps
