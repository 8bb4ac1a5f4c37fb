// SPDX-License-Identifier: Apache-2.0
// The script for zsh: as that for bash, with a sentence beside each offer. It works from a folder of fpath and when it is
// sourced.
#include <string_view>

#include "config/help/completion.h"
#include "config/help/shell_commands.h"
#include "core/text.h"

namespace welkin::config {
namespace {

constexpr std::string_view kZshHead = R"(
# Sets what may stand behind the command $1; status 1 where there is no such command.
_welkin_command() {
  flags=() bare=() negations=() configured= launches= paths=
  case $1 in
)";

constexpr std::string_view kZshOption = R"(    *) return 1 ;;
  esac
  [[ -z $configured ]] || { flags=("${(@)_welkin_configuration}" "${(@)flags}"); negations=("${(@)_welkin_negations}" "${(@)negations}") }
}

# Sets what the option $2 of the command $1 takes.
_welkin_option() {
  kind=any optional= values=()
  case $2 in (-h|--no-*) kind=none; return ;; esac
  case "$1 $2" in
)";

constexpr std::string_view kZshConfiguration = R"(    *)
      [[ -n $configured ]] || return 0
      case $2 in
)";

constexpr std::string_view kZshKey = R"(      esac ;;
  esac
}

# Sets what the key $1 of --set takes.
_welkin_key() {
  kind=any values=()
  case $1 in
)";

constexpr std::string_view kZshTail = R"(  esac
}

# The top-level keys of the file that --yaml_config names.
_welkin_offer_presets() {
  local line
  local -a presets
  [[ -f $yaml && -r $yaml ]] || return 1
  while IFS= read -r line; do
    [[ $line =~ '^[A-Za-z0-9_.-]+:' ]] && presets+=("${line%%:*}")
  done < "$yaml"
  compadd -a presets
}

_welkin_offer_values() {
  case $kind in
    (choice) compadd -a values ;;
    (path) _files ;;
    (preset) _welkin_offer_presets ;;
    (assignment)
      if [[ $PREFIX == *=* ]]; then
        _welkin_key "${PREFIX%%=*}"
        compset -P 1 '*='
        _welkin_offer_values
      else
        _describe -t keys key _welkin_keys -S '='
      fi ;;
    (*) return 1 ;;
  esac
}

# The command and, where the last option waits for its value, that option: from the words before the current one.
_welkin_walk() {
  local word name
  _welkin_command "$command"
  for word in "${(@)words[2,CURRENT-1]}"; do
    if [[ -n $pending ]]; then
      [[ $pending == --yaml_config ]] && yaml=${word/#\~\//$HOME/}
      pending=
    elif [[ $word == -- ]]; then
      [[ -n $launches ]] && command=welkin
    elif [[ $word == -* ]]; then
      name=${word%%=*}
      [[ $word == --yaml_config=* ]] && yaml=${word#*=}
      _welkin_command "$command $name" && command="$command $name"
      _welkin_command "$command"
      _welkin_option "$command" "$name"
      [[ $kind != none && -z $optional && $word != *=* ]] && pending=$name
    elif _welkin_command "$command $word"; then
      command="$command $word"
    elif [[ $command == 'welkin launch' ]] && _welkin_command "welkin $word"; then
      command="welkin $word"  # the -- before the verb may be left out
    fi
    _welkin_command "$command"
  done
}

_welkin() {
  local command=welkin pending= yaml= configured launches paths kind optional
  local -a flags bare negations values
  _welkin_walk
  if [[ -n $pending ]]; then
    _welkin_option "$command" "$pending"
    _welkin_offer_values
  elif [[ $PREFIX == --*=* ]]; then
    _welkin_option "$command" "${PREFIX%%=*}"
    compset -P 1 '*='
    _welkin_offer_values
  elif [[ $PREFIX == --no-* ]]; then
    compadd -a negations
    _describe -o -t options option flags
  elif [[ $PREFIX == -* || ( -z $paths && $#bare == 0 ) ]]; then
    _describe -o -t options option flags
  else
    (( $#bare )) && _describe -t commands word bare
    [[ -n $paths ]] && _files
  fi
}

if [[ $funcstack[1] == _welkin ]]; then
  _welkin "$@"
else
  compdef _welkin welkin
fi
)";

// 'name:what it is', as _describe wants it: a colon in the name is marked.
std::string described(const std::string& name, const std::string& summary) {
  std::string item;
  for (const char c : name) item += c == ':' ? std::string("\\:") : std::string(1, c);
  return quoted(summary.empty() ? item : cat(item, ":", summary));
}

std::string zsh_options(const std::vector<Option>& options) {
  std::vector<std::string> items;
  for (const Option& option : options) {
    items.push_back(described(option.name, option.help));
    if (!option.short_name.empty()) items.push_back(described(option.short_name, option.help));
  }
  return join(items, " ");
}

std::string zsh_negations(const std::vector<Option>& options) {
  std::vector<std::string> names;
  for (const Option& option : options) {
    if (option.has_negation) names.push_back("--no-" + option.name.substr(2));
  }
  return joined_words(names);
}

std::string zsh_row(const ShellCommand& command) {
  std::vector<std::string> words;
  for (const auto& [word, summary] : command.words) words.push_back(described(word, summary));
  std::string row = cat("    (", quoted(command.path), ")");
  if (!command.options.empty()) row += cat(" flags=(", zsh_options(command.options), ")");
  if (const std::string names = zsh_negations(command.options); !names.empty()) row += cat(" negations=(", names, ")");
  if (!words.empty()) row += cat(" bare=(", join(words, " "), ")");
  for (const auto& [name, is_so] : {std::pair{"configured", command.takes_configuration},
                                    {"launches", command.starts_verb},
                                    {"paths", command.takes_paths}}) {
    if (is_so) row += cat(" ", name, "=1");
  }
  return row + " ;;\n";
}

}  // namespace

std::string zsh_completion(const ProgramHelp& program) {
  const std::vector<ShellCommand> commands = shell_commands(program);
  std::string text =
      cat("#compdef welkin\n# Completion of welkin ", program.version, " in zsh, printed by `welkin completion zsh`.\n",
          "typeset -ga _welkin_configuration=(", zsh_options(program.configuration), ")\ntypeset -ga _welkin_negations=(",
          zsh_negations(program.configuration), ")\ntypeset -ga _welkin_keys=(", zsh_options(program.keys), ")\n", kZshHead);
  for (const ShellCommand& command : commands) text += zsh_row(command);
  return cat(text, kZshOption, option_cases(commands, "    "), kZshConfiguration, option_cases(program.configuration, "        "),
             kZshKey, option_cases(program.keys, "    "), kZshTail);
}

}  // namespace welkin::config
