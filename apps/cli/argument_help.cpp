// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/argument_help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "apps/cli/help.h"
#include "config/schema/key.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

constexpr size_t kHelpColumn = 30;

bool is_path_type(const std::string& type) { return type.starts_with("FILE") || type.starts_with("DIR"); }

// Turns CLI11's "INT:INT in [0 - 22]", "UINT", "FLOAT:POSITIVE", "TEXT" into a name: integer, number, or unchanged.
std::string metavar_of(const std::string& type) {
  const std::string name = type.substr(0, type.find(':'));
  if (name == "INT" || name == "UINT") return "N";
  return name == "FLOAT" ? "X" : name;
}

// Extracts "0 to 22" from "INT:INT in [0 - 22]".
std::string range_of(const std::string& type) {
  const size_t open = type.find(" in ["), gap = type.find(" - ", open), close = type.find(']', open);
  if (open == std::string::npos || gap == std::string::npos || close == std::string::npos) return "";
  return cat(type.substr(open + 5, gap - open - 5), " to ", type.substr(gap + 3, close - gap - 3));
}

std::string help_of(const CLI::Option& option, const config::Option& row) {
  std::vector<std::string> remarks;
  const std::string range = range_of(option.get_type_name());
  if (option.get_required() && !option.get_positional()) remarks.emplace_back("required");
  if (!range.empty()) remarks.push_back(range);
  if (!option.get_default_str().empty()) remarks.push_back("default: " + option.get_default_str());
  return remarks.empty() ? row.help : cat(row.help, " (", join(remarks, "; "), ")");
}

std::string typed_name(const CLI::Option& option, const config::Option& row) {
  std::string text = row.short_name.empty() ? row.name : cat(row.short_name, ", ", row.name);
  if (row.value_may_be_absent && !row.metavar.empty()) return cat(text, "[=", row.metavar, "]");
  if (!row.metavar.empty()) text += " " + row.metavar;
  if (option.get_items_expected_max() > 1) text += "...";
  return text;
}

std::string help_row(std::string left, const std::string& help) {
  left = "  " + left;
  if (left.size() + 2 > kHelpColumn)
    left += "\n" + std::string(kHelpColumn, ' ');
  else
    left.resize(kHelpColumn, ' ');
  return cat(left, wrapped(help, kHelpWidth, kHelpColumn), "\n");
}

std::string positional_name(const CLI::Option& option) {
  return cat(option.get_name(), option.get_items_expected_max() > 1 ? "..." : "");
}

// The value in "VALUE not in {a,b}" and "Check VALUE value in {a->0,b->1} OR {0,1} FAILED".
std::string_view refused_value(std::string_view text) {
  if (text.starts_with("Check ")) return text.substr(6, text.find(" value in {") - 6);
  return text.substr(0, text.find(" not in {"));
}

}  // namespace

config::Option described_option(const launch::LaunchOption& option) {
  return {.name = std::string(option.name),
          .short_name = std::string(option.short_name),
          .metavar = std::string(option.metavar),
          .help = std::string(option.help),
          .kind = option.metavar.empty() ? config::ValueKind::None : config::ValueKind::Any};
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  std::vector<std::string> choices;
  for (const std::string_view choice : config::split(std::string_view(type).substr(open + 1, close - open - 1), ',')) {
    choices.emplace_back(choice.substr(0, choice.find("->")));
  }
  return choices;
}

config::Option described_option(const CLI::Option& option) {
  const bool is_long = !option.get_lnames().empty();
  const std::string type = option.get_type_name();
  config::Option row{.name = is_long ? "--" + option.get_lnames().back() : "-" + option.get_snames().front(),
                     .help = option.get_description(),
                     .value_may_be_absent = option.get_items_expected_min() == 0};
  if (is_long && !option.get_snames().empty()) row.short_name = "-" + option.get_snames().front();
  if (option.get_items_expected_max() == 0) return row;
  row.choices = choices_of(option);
  row.metavar = row.choices.empty() ? metavar_of(type) : join(row.choices, "|");
  row.kind = !row.choices.empty() ? config::ValueKind::Choice
             : is_path_type(type) ? config::ValueKind::Path
                                  : config::ValueKind::Any;
  return row;
}

std::string arguments_help(const CLI::App& app) {
  std::string usage = cat("Usage: ", app.get_name()), arguments, options;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) {
      const config::Option row = described_option(*option);
      options += help_row(typed_name(*option, row), help_of(*option, row));
      continue;
    }
    const std::string name = positional_name(*option);
    usage += option->get_required() ? cat(" ", name) : cat(" [", name, "]");
    arguments += help_row(name, help_of(*option, {.name = name, .help = option->get_description()}));
  }
  std::string text = cat(usage, " [options]\n");
  if (!app.get_description().empty()) text += cat("\n", wrapped(app.get_description(), kHelpWidth, 0), "\n");
  if (!arguments.empty()) text += cat("\nArguments:\n", arguments);
  return cat(text, "\nOptions:\n", options);
}

std::string argument_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  if (error.get_name() != "ValidationError") return text;
  const size_t colon = text.find(": ");
  if (colon == std::string::npos) return text;
  const std::string name = text.substr(0, colon), reason = text.substr(colon + 2);
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_name() != name) continue;
    const auto choices = choices_of(*option);
    if (!choices.empty()) return cat(name, ": \"", refused_value(reason), "\" is none of ", join(choices, ", "));
    // CLI::PositiveNumber says "Value -3 not in range 0.000000 to 1797...".
    const size_t range = reason.find(" not in range ");
    if (option->get_type_name().ends_with("POSITIVE") && range != std::string::npos) {
      return cat(name, ": ", reason.substr(0, range), " is not above 0");
    }
  }
  return text;
}

}  // namespace welkin::apps
