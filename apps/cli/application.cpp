// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/application.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <ostream>
#include <sstream>

#include "apps/cli/help.h"
#include "config/schema/key.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

// "TEXT:{fp32,bf16}" and "TEXT:value in {error->0,mean->1} OR {0,1}" name choices: fp32 and bf16, error and mean.
std::vector<std::string> choices_in(const std::string& type) {
  const size_t open = type.find('{'), close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  std::vector<std::string> choices;
  for (const std::string_view choice : config::split(std::string_view(type).substr(open + 1, close - open - 1), ',')) {
    choices.emplace_back(choice.substr(0, choice.find("->")));
  }
  return choices;
}

bool is_path_type(const std::string& type) { return type.starts_with("FILE") || type.starts_with("DIR"); }

config::Option described_option(const CLI::Option& option) {
  const bool is_long = !option.get_lnames().empty();
  const std::string type = option.get_type_name();
  config::Option row{.name = is_long ? "--" + option.get_lnames().back() : "-" + option.get_snames().front(),
                     .help = option.get_description(),
                     .value_may_be_absent = option.get_items_expected_min() == 0};
  if (is_long && !option.get_snames().empty()) row.short_name = "-" + option.get_snames().front();
  if (option.get_items_expected_max() == 0) return row;
  row.metavar = type.substr(0, type.find(':'));
  row.choices = choices_in(type);
  row.kind = !row.choices.empty() ? config::ValueKind::Choice
             : is_path_type(type) ? config::ValueKind::Path
                                  : config::ValueKind::Any;
  if (!row.choices.empty()) row.metavar = join(row.choices, "|");
  return row;
}

void record(config::VerbHelp& answer, const CLI::App& app, const Forms& forms) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) {
      answer.options.push_back(described_option(*option));
      continue;
    }
    answer.arguments +=
        cat(answer.arguments.empty() ? "" : " ", option->get_name(), option->get_items_expected_max() > 1 ? "..." : "");
    if (const auto choices = choices_in(option->get_type_name()); !choices.empty()) {
      answer.words = choices;
    } else {
      answer.takes_paths = true;
    }
  }
  answer.takes_configuration = app.get_allow_extras();  // they are handed on as such
  for (const char* form : forms) answer.forms.push_back({.name = form, .summary = ""});
}

// CLI11 writes a description in one line. What stands behind two blanks goes on below itself.
std::string fitted(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const size_t gap = line.find("  ", begin);
    const size_t column = gap == std::string::npos ? begin : line.find_first_not_of(' ', gap);
    result += column == std::string::npos
                  ? line + "\n"
                  : cat(line.substr(0, column), wrapped(std::string_view(line).substr(column), kHelpWidth, column), "\n");
  }
  return result;
}

}  // namespace

bool parse_arguments(Application& application, CLI::App& app, int argc, char** argv, const Forms& forms) {
  app.name(argv[0]);
  if (application.recorded != nullptr) {
    record(*application.recorded, app, forms);
    return false;
  }
  // These verbs have one help for --help and --help=all.
  std::vector<const char*> words(argv, argv + argc);
  std::replace_if(
      words.begin(), words.end(), [](const char* word) { return std::string_view(word) == "--help=all"; }, "--help");
  try {
    app.parse(argc, words.data());
    return true;
  } catch (const CLI::CallForHelp&) {
    application.out << fitted(app.help());
  } catch (const CLI::CallForAllHelp&) {
    application.out << fitted(app.help("", CLI::AppFormatMode::All));
  } catch (const CLI::ParseError& error) {
    throw ConfigError(argv[0], error.what(), std::string("Run ") + argv[0] + " --help");
  }
  return false;
}

}  // namespace welkin::apps
