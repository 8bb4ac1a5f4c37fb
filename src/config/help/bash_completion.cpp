// SPDX-License-Identifier: Apache-2.0
// The script for bash: tables of commands and options, then the function that reads them.
#include <string_view>

#include "config/help/completion.h"
#include "config/help/shell_commands.h"
#include "core/text.h"

namespace welkin::config {
namespace {

constexpr std::string_view kBashHead = R"(
# Sets what may stand behind the command $1; status 1 where there is no such command.
_welkin_command() {
  flags=() bare=() negations=() configured= launches= paths=
  case $1 in
)";

constexpr std::string_view kBashOption = R"(    *) return 1 ;;
  esac
}

# Sets what the option $2 of the command $1 takes.
_welkin_option() {
  kind=any optional= values=()
  case $2 in -h|--no-*) kind=none; return ;; esac
  case "$1 $2" in
)";

constexpr std::string_view kBashConfiguration = R"(    *)
      [[ $configured ]] || return
      case $2 in
)";

constexpr std::string_view kBashKey = R"(      esac ;;
  esac
}

# Sets what the key $1 of --set takes.
_welkin_key() {
  kind=any values=()
  case $1 in
)";

constexpr std::string_view kBashTail = R"(  esac
}

_welkin_offer() {  # those of the words $2... that begin with $1
  local start=$1 word
  shift
  for word; do [[ $word == "$start"* ]] && COMPREPLY+=("$word"); done
}

_welkin_offer_paths() {
  local path
  while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen -f -- "$1")
  compopt -o filenames 2>/dev/null
}

# The top-level keys of the file that --yaml_config names.
_welkin_offer_presets() {
  local line
  [[ -f $yaml && -r $yaml ]] || return
  while IFS= read -r line; do
    [[ $line =~ ^([A-Za-z0-9_.-]+): ]] && _welkin_offer "$1" "${BASH_REMATCH[1]}"
  done < "$yaml"
}

_welkin_offer_values() {
  case $kind in
    choice) _welkin_offer "$1" "${values[@]}" ;;
    path) _welkin_offer_paths "$1" ;;
    preset) _welkin_offer_presets "$1" ;;
    assignment)
      if [[ $1 == *=* ]]; then
        current=${1#*=}
        _welkin_key "${1%%=*}"
        _welkin_offer_values "$current"
      else
        _welkin_offer "$1" "${_welkin_keys[@]/%/=}"
        compopt -o nospace 2>/dev/null
      fi ;;
  esac
}

# `--amp_mode=bf16` and `--set lr=1e-3` arrive as several words, since '=' ends one: they are joined again.
_welkin_join() {
  local i last behind_equals=
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    last=$((${#typed[@]} - 1))
    if ((last >= 0)) && [[ ${COMP_WORDS[i]} == '='* || $behind_equals ]]; then
      typed[last]+=${COMP_WORDS[i]}
    else
      typed+=("${COMP_WORDS[i]}")
    fi
    behind_equals=
    [[ ${COMP_WORDS[i]} == '=' ]] && behind_equals=1
  done
}

# The command and, where the last option waits for its value, that option: from the words before the current one.
_welkin_walk() {
  local word i name
  _welkin_command "$command"
  for ((i = 0; i < ${#typed[@]} - 1; ++i)); do
    word=${typed[i]}
    if [[ $pending ]]; then
      [[ $pending == --yaml_config ]] && yaml=${word/#\~\//$HOME/}
      pending=
    elif [[ $word == -- ]]; then
      [[ $launches ]] && command=welkin
    elif [[ $word == -* ]]; then
      name=${word%%=*}
      [[ $word == --yaml_config=* ]] && yaml=${word#*=}
      _welkin_command "$command $name" && command="$command $name"
      _welkin_command "$command"
      _welkin_option "$command" "$name"
      [[ $kind != none && ! $optional && $word != *=* ]] && pending=$name
    elif _welkin_command "$command $word"; then
      command="$command $word"
    elif [[ $command == 'welkin launch' ]] && _welkin_command "welkin $word"; then
      command="welkin $word"  # the -- before the verb may be left out
    fi
    _welkin_command "$command"
  done
}

_welkin() {
  local command=welkin pending= yaml= current whole configured launches paths kind optional
  local -a typed=() flags=() bare=() negations=() values=()
  COMPREPLY=()
  _welkin_join
  _welkin_walk
  whole=${typed[${#typed[@]} - 1]}
  current=$whole
  if [[ $pending ]]; then
    _welkin_option "$command" "$pending"
    _welkin_offer_values "$current"
  elif [[ $whole == --*=* ]]; then
    _welkin_option "$command" "${whole%%=*}"
    current=${whole#*=}
    _welkin_offer_values "$current"
  elif [[ $whole == --no-* ]]; then
    _welkin_offer "$whole" "${negations[@]}" "${flags[@]}"
  elif [[ $whole == -* || ( ! $paths && ${#bare[@]} == 0 ) ]]; then
    _welkin_offer "$whole" "${flags[@]}"
  else
    _welkin_offer "$whole" "${bare[@]}"
    [[ $paths ]] && _welkin_offer_paths "$whole"
  fi
  # readline replaces what stands behind the last '=' alone, unless '=' ends no word.
  [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/${whole%"$current"}}")
}

complete -F _welkin welkin
)";

std::string bash_flags(const std::vector<Option>& options) {
  std::vector<std::string> names;
  for (const Option& option : options) {
    names.push_back(option.name);
    if (!option.short_name.empty()) names.push_back(option.short_name);
  }
  return joined_words(names);
}

std::string bash_negations(const std::vector<Option>& options) {
  std::vector<std::string> names;
  for (const Option& option : options) {
    if (option.has_negation) names.push_back("--no-" + option.name.substr(2));
  }
  return joined_words(names);
}

std::string bash_row(const ShellCommand& command) {
  const bool configured = command.takes_configuration;
  const std::string negations = bash_negations(command.options);
  std::vector<std::string> words;
  for (const auto& [word, summary] : command.words) words.push_back(word);
  std::string row = cat("    ", quoted(command.path), ")");
  row += cat(" flags=(", configured ? "\"${_welkin_configuration[@]}\" " : "", bash_flags(command.options), ")");
  if (configured) row += cat(" negations=(\"${_welkin_negations[@]}\" ", negations, ")");
  if (!configured) row += cat(" negations=(", negations, ")");
  if (!words.empty()) row += cat(" bare=(", joined_words(words), ")");
  for (const auto& [name, is_so] :
       {std::pair{"configured", configured}, {"launches", command.starts_verb}, {"paths", command.takes_paths}}) {
    if (is_so) row += cat(" ", name, "=1");
  }
  return row + " ;;\n";
}

}  // namespace

std::string bash_completion(const ProgramHelp& program) {
  const std::vector<ShellCommand> commands = shell_commands(program);
  std::vector<std::string> keys;
  for (const Option& key : program.keys) keys.push_back(key.name);
  std::string text = cat("# Completion of welkin ", program.version, " in bash, printed by `welkin completion bash`.\n",
                         "_welkin_configuration=(", bash_flags(program.configuration), ")\n", "_welkin_negations=(",
                         bash_negations(program.configuration), ")\n", "_welkin_keys=(", joined_words(keys), ")\n", kBashHead);
  for (const ShellCommand& command : commands) text += bash_row(command);
  return cat(text, kBashOption, option_cases(commands, "    "), kBashConfiguration,
             option_cases(program.configuration, "        "), kBashKey, option_cases(program.keys, "    "), kBashTail);
}

}  // namespace welkin::config
