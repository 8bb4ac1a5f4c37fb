// SPDX-License-Identifier: Apache-2.0
// `welkin train`: resolves the configuration and runs the trainer.
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "config/command_line.h"
#include "config/paths.h"
#include "config/print.h"
#include "config/resolve.h"
#include "core/error.h"
#include "core/signals.h"
#include "core/text.h"
#include "launch/ranks.h"
#include "observe/console.h"
#include "observe/run_log.h"
#include "train/registries.h"
#include "train/trainer.h"
#include "verbs.h"

namespace welkin::apps {
namespace {

// --dry_run: the resolved configuration, opening no data. Absent paths are warnings, errors with --check_data.
void print_configuration(Application& application, const config::CommandLine& line, const config::Resolved& resolved) {
  if (line.dry_run == config::DryRun::Yaml) {
    application.out << config::yaml(resolved.config);
  } else {
    application.out << config::table(resolved, kWorldSize);
  }
  if (line.check_data) return config::check_paths(resolved.config);
  if (const std::string missing = config::describe_missing(resolved.config); !missing.empty()) {
    application.err << "warning: " << missing << "\n";
  }
}

// Several processes would train the same run into the same folder.
void require_one_process() {
  const launch::RankPlace place = launch::find_ranks([](const char* name) { return std::getenv(name); });
  if (place.world_size == kWorldSize) return;
  throw ConfigError("train", cat("a run has one process so far: ", launch::describe(place)), "Start one process");
}

// What was typed, with --resume.
std::string resume_command(int argc, char** argv, bool resumes) {
  std::string command = join(std::vector<std::string>(argv, argv + argc), " ");
  return resumes ? command : command + " --resume";
}

}  // namespace

int verb_train(Application& application, int argc, char** argv) {
  const config::CommandLine line = config::parse(argc, argv);
  if (line.help) {
    application.out << config::help_text(argv[0]);
    return 0;
  }
  const config::Resolved resolved = config::resolve(line, kWorldSize, application.registries.known_names());
  if (line.dry_run != config::DryRun::Off) {
    print_configuration(application, line, resolved);
    return 0;
  }
  require_one_process();
  const InterruptWatch interrupt;
  observe::Console console;
  observe::RunLog log(console);
  train::Trainer trainer({.resolved = resolved,
                          .registries = application.registries,
                          .console = console,
                          .log = log,
                          .interrupt = interrupt,
                          .resume_command = resume_command(argc, argv, resolved.config.loop.resume)});
  trainer.run();
  return 0;
}

}  // namespace welkin::apps
