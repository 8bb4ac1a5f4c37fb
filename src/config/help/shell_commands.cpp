// SPDX-License-Identifier: Apache-2.0
#include "config/help/shell_commands.h"

#include <algorithm>
#include <map>

#include "core/text.h"

namespace welkin::config {
namespace {

ShellCommand& command_at(std::vector<ShellCommand>& commands, const std::string& path) {
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const ShellCommand& row) { return row.path == path; });
  return found == commands.end() ? commands.emplace_back(ShellCommand{.path = path}) : *found;
}

void add_word(ShellCommand& command, const std::string& word, const std::string& summary) {
  const auto same = [&](const auto& row) { return row.first == word; };
  if (std::none_of(command.words.begin(), command.words.end(), same)) command.words.emplace_back(word, summary);
}

std::string verbs_behind(const ProgramHelp& program, const std::string& group) {
  std::vector<std::string> names;
  for (const VerbHelp& verb : program.verbs) {
    if (verb.name.starts_with(group + " ")) names.push_back(verb.name.substr(group.size() + 1));
  }
  return join(names, ", ");
}

void add_forms(std::vector<ShellCommand>& commands, const std::string& path, const VerbHelp& verb) {
  ShellCommand& row = command_at(commands, path);
  row.options = verb.options;
  row.takes_configuration = verb.takes_configuration;
  row.starts_verb = verb.starts_verb;
  row.takes_paths = verb.takes_paths;
  for (const std::string& word : verb.words) add_word(row, word, "");
  for (const VerbHelp& form : verb.forms) {
    if (!form.name.starts_with("-")) add_word(command_at(commands, path), form.name, form.summary);
    add_forms(commands, cat(path, " ", form.name), form);
  }
}

// The shell's action for an option: text of the branch of its case.
std::string action_of(const Option& option) {
  std::string action;
  switch (option.kind) {
    case ValueKind::None:
      return "kind=none";
    case ValueKind::Any:
      action = "kind=any";
      break;
    case ValueKind::Choice:
      action = cat("kind=choice values=(", joined_words(option.choices), ")");
      break;
    case ValueKind::Path:
      action = "kind=path";
      break;
    case ValueKind::Assignment:
      action = "kind=assignment";
      break;
    case ValueKind::Preset:
      action = "kind=preset";
      break;
  }
  return action + (option.value_may_be_absent ? " optional=1" : "");
}

// Groups patterns by their action, in the order in which they come.
class Cases {
 public:
  void add(const std::string& pattern, const std::string& action) {
    const auto [place, is_new] = patterns_.try_emplace(action);
    if (is_new) order_.push_back(action);
    place->second.push_back(quoted(pattern));
  }
  std::string text(std::string_view indent) const {
    std::string text;
    for (const std::string& action : order_) text += cat(indent, join(patterns_.at(action), "|"), ") ", action, " ;;\n");
    return text;
  }

 private:
  std::map<std::string, std::vector<std::string>> patterns_;
  std::vector<std::string> order_;
};

void add_option(Cases& cases, const std::string& before, const Option& option) {
  cases.add(before + option.name, action_of(option));
  if (!option.short_name.empty()) cases.add(before + option.short_name, action_of(option));
}

}  // namespace

std::vector<ShellCommand> shell_commands(const ProgramHelp& program) {
  std::vector<ShellCommand> commands{{.path = "welkin", .options = program.options}};
  for (const VerbHelp& verb : program.verbs) {
    const size_t blank = verb.name.find(' ');
    if (blank == std::string::npos) {
      add_word(commands.front(), verb.name, verb.summary);
    } else {
      const std::string group = verb.name.substr(0, blank);
      add_word(commands.front(), group, verbs_behind(program, group));
      add_word(command_at(commands, "welkin " + group), verb.name.substr(blank + 1), verb.summary);
    }
    add_forms(commands, "welkin " + verb.name, verb);
  }
  return commands;
}

std::string option_cases(const std::vector<ShellCommand>& commands, std::string_view indent) {
  Cases cases;
  for (const ShellCommand& command : commands) {
    for (const Option& option : command.options) add_option(cases, command.path + " ", option);
  }
  return cases.text(indent);
}

std::string option_cases(const std::vector<Option>& options, std::string_view indent) {
  Cases cases;
  for (const Option& option : options) add_option(cases, "", option);
  return cases.text(indent);
}

std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string joined_words(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+:/@%=-";
  std::vector<std::string> plain;
  for (const std::string& word : words) {
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) plain.push_back(word);
  }
  return join(plain, " ");
}

}  // namespace welkin::config
