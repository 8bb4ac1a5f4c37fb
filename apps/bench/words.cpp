// SPDX-License-Identifier: Apache-2.0
// The words behind `welkin bench`, which stand for flags.
#include <algorithm>

#include "apps/bench/modes.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

// All words that may stand behind the verb.
std::vector<std::string> words_of_bench() {
  std::vector<std::string> words{"step"};
  for (const BenchMode& mode : bench_modes()) words.emplace_back(mode.name);
  for (const BenchStudy& study : bench_studies()) words.emplace_back(study.name);
  return words;
}

bool is_flag(std::string_view word, std::string_view name) {
  const std::string flag = cat("--", name);
  return word == flag || word.starts_with(flag + "=");
}

// Value of a word's flag: the next argument. With --help and no argument, any value that the flag takes.
std::string value_behind(const std::vector<std::string>& arguments, std::string_view word, std::string_view metavar) {
  if (arguments.size() > 1 && !arguments[1].starts_with("-")) return arguments[1];
  const bool asks_for_help = names_flag(arguments, "help") || std::ranges::find(arguments, "-h") != arguments.end();
  if (asks_for_help) return std::string(metavar.substr(0, metavar.find('|')));
  throw ConfigError("bench", cat("bench ", word, " needs what it is over: ", metavar), cat("See welkin bench ", word, " --help"));
}

}  // namespace

bool names_flag(const std::vector<std::string>& arguments, std::string_view name) {
  return std::ranges::any_of(arguments, [&](const std::string& word) { return is_flag(word, name); });
}

std::vector<std::string> with_flag_of_word(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front().starts_with("-")) return arguments;
  const std::string word = arguments.front();
  const auto replaced = [&](std::vector<std::string> flag, size_t taken) {
    flag.insert(flag.end(), arguments.begin() + static_cast<std::ptrdiff_t>(std::min(taken, arguments.size())), arguments.end());
    return flag;
  };
  const auto as_flag = [&](std::string_view metavar) {
    if (metavar.empty()) return replaced({cat("--", word)}, 1);
    const std::string value = value_behind(arguments, word, metavar);
    return replaced({cat("--", word), value}, arguments.size() > 1 && arguments[1] == value ? 2 : 1);
  };
  if (word == "step") return names_flag(arguments, "mode") ? replaced({}, 1) : replaced({"--mode", "synthetic"}, 1);
  for (const BenchMode& mode : bench_modes()) {
    if (mode.name == word)
      return mode.selected_by == SelectedBy::ModeName ? replaced({"--mode", word}, 1) : as_flag(mode.metavar);
  }
  for (const BenchStudy& study : bench_studies()) {
    if (study.name == word) return as_flag(study.metavar);
  }
  const auto close = nearest(word, words_of_bench());
  throw ConfigError(
      "bench", cat("nothing of this name is measured: ", word),
      close.empty() ? cat("Choose one of: ", join(words_of_bench(), ", ")) : cat("Did you mean: ", join(close, ", ")));
}

}  // namespace welkin::apps
