// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/global_options.h"

#include <algorithm>
#include <ostream>
#include <string_view>

#include "apps/cli/help.h"
#include "apps/cli/verbs.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

constexpr size_t kUsageColumn = 19;

void print_verb(std::ostream& out, const Verb& verb) {
  const std::string_view name = verb.name;
  out << "  " << name << std::string(std::max<size_t>(2, 18 - name.size()), ' ') << verb.summary << "\n";
}

}  // namespace

const std::vector<config::Option>& global_options() {
  using enum config::ValueKind;
  static const std::vector<config::Option> options{
      {.name = "--torch",
       .metavar = "DIR",
       .help = "folder of the torch 2.11.0 package (else WELKIN_TORCH, the active or nearby .venv, python3)",
       .kind = Path},
      {.name = "--plugin",
       .metavar = "LIB.so",
       .help = "a shared object with your own models, data sets, losses, schedules or optimizers",
       .kind = Path},
      {.name = "--bind",
       .metavar = "MODE",
       .help = "cores of each process of a run: auto, off, or a list per local rank such as 0-3:4-7",
       .kind = Choice,
       .choices = {"auto", "off"}},
      {.name = "--version", .help = "print the version"},
      {.name = "--help",
       .help = "print this text; `welkin VERB --help` or `welkin help VERB` for a verb, `--help=all` for all its options"},
  };
  return options;
}

GlobalOptions parse_global_options(std::span<char*> arguments) {
  GlobalOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const bool takes_value = argument == "--plugin" || argument == "--torch" || argument == "--bind";
    if (takes_value && i + 1 == arguments.size()) {
      throw ConfigError("welkin", cat("an option needs a value: option=", argument), "Run welkin --help");
    }
    if (asks_for_help(argument)) {
      options.help = true;
    } else if (argument == "--version") {
      options.version = true;
    } else if (takes_value) {
      ++i;
      if (argument == "--plugin") options.plugins.emplace_back(arguments[i]);
    } else if (argument.starts_with("-")) {
      throw ConfigError("welkin", cat("unknown option: option=", argument), "Options of a verb follow it. Run welkin --help");
    } else {
      options.typed.assign(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(i));
      options.rest.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
      break;
    }
  }
  return options;
}

void print_usage(std::ostream& out) {
  out << "usage: welkin [--torch DIR] [--plugin LIB.so]... [--bind MODE] VERB [ARGUMENTS]\n\n";
  for (const config::Option& option : global_options()) {
    std::string left = cat("  ", option.name, " ", option.metavar);
    left.resize(kUsageColumn, ' ');
    out << left << wrapped(option.help, kHelpWidth, kUsageColumn) << "\n";
  }
  out << "\nverbs:\n";
  for (const Verb& verb : verbs()) print_verb(out, verb);
}

void print_usage(std::ostream& out, const std::vector<const Verb*>& group) {
  const std::string_view name = group.front()->name;
  out << "usage: welkin " << name.substr(0, name.find(' ')) << " VERB [ARGUMENTS]\n\nverbs:\n";
  for (const Verb* verb : group) print_verb(out, *verb);
  out << "\n`welkin " << name << " --help` has the options of a verb.\n";
}

}  // namespace welkin::apps
