// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/find_verb.h"

#include <string>

#include "core/error.h"
#include "core/text.h"

namespace welkin::apps {

std::vector<char*> without_help_word(std::vector<char*> rest) {
  static char help[] = "--help", version[] = "--version";
  if (rest.empty()) return rest;
  const std::string_view first = rest.front();
  if (first == "version" && rest.size() == 1) return {version};
  if (first != "help") return rest;
  rest.erase(rest.begin());
  rest.push_back(help);
  return rest;
}

FoundVerb find_verb(std::span<char*> words) {
  for (const Verb& verb : verbs()) {
    const std::string_view name = verb.name;
    if (words[0] == name) return {&verb, 1};
    if (words.size() > 1 && cat(words[0], " ", words[1]) == name) return {&verb, 2};
  }
  return {};
}

std::vector<const Verb*> verbs_of(std::string_view first_word) {
  std::vector<const Verb*> found;
  for (const Verb& verb : verbs()) {
    if (std::string_view(verb.name).starts_with(cat(first_word, " "))) found.push_back(&verb);
  }
  return found;
}

void report_unknown_verb(std::span<char*> words) {
  std::vector<std::string> group, names;
  for (const Verb* verb : verbs_of(words[0])) group.emplace_back(verb->name);
  if (!group.empty()) {
    throw ConfigError("welkin", cat("the verb needs a second word: verb=", words[0]), cat("Choose one of: ", join(group, ", ")));
  }
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  const auto close = nearest(words[0], names);
  throw ConfigError("welkin", cat("unknown verb: verb=", words[0]),
                    close.empty() ? "Run welkin --help for the verbs" : cat("Did you mean: ", join(close, ", ")));
}

}  // namespace welkin::apps
