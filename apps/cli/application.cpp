// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/application.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/argument_help.h"
#include "config/help/option.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

void record(config::VerbHelp& answer, const CLI::App& app, const Forms& forms) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) {
      answer.options.push_back(described_option(*option));
      continue;
    }
    answer.arguments +=
        cat(answer.arguments.empty() ? "" : " ", option->get_name(), option->get_items_expected_max() > 1 ? "..." : "");
    if (const auto choices = choices_of(*option); !choices.empty()) {
      answer.words = choices;
    } else {
      answer.takes_paths = true;
    }
  }
  answer.takes_configuration = app.get_allow_extras();  // extra words are handed on as its flags
  for (const char* form : forms) answer.forms.push_back({.name = form, .summary = ""});
}

}  // namespace

bool parse_arguments(Application& application, CLI::App& app, int argc, char** argv, const Forms& forms) {
  app.name(argv[0]);
  app.set_help_flag("-h,--help", "print this text");
  if (application.recorded != nullptr) {
    record(*application.recorded, app, forms);
    return false;
  }
  // These verbs print the same help for --help and --help=all.
  std::vector<const char*> words(argv, argv + argc);
  std::replace_if(
      words.begin(), words.end(), [](const char* word) { return std::string_view(word) == "--help=all"; }, "--help");
  try {
    app.parse(argc, words.data());
    return true;
  } catch (const CLI::CallForHelp&) {
    application.out << arguments_help(app);
  } catch (const CLI::ParseError& error) {
    throw ConfigError(argv[0], argument_error(app, error), std::string("Run ") + argv[0] + " --help");
  }
  return false;
}

}  // namespace welkin::apps
