// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/application.h"

#include <CLI/CLI.hpp>
#include <ostream>

#include "core/error.h"

namespace welkin::apps {

bool parse_arguments(Application& application, CLI::App& app, int argc, char** argv) {
  app.name(argv[0]);
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp&) {
    application.out << app.help();
  } catch (const CLI::CallForAllHelp&) {
    application.out << app.help("", CLI::AppFormatMode::All);
  } catch (const CLI::ParseError& error) {
    throw ConfigError(argv[0], error.what(), std::string("Run ") + argv[0] + " --help");
  }
  return false;
}

}  // namespace welkin::apps
