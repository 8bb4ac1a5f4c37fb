// SPDX-License-Identifier: Apache-2.0
// Finds the verb that the words behind the program's own options mean.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "apps/cli/verbs.h"

namespace welkin::apps {

// Turns `help data ingest` into `data ingest --help`, `help` into `--help`, `version` into `--version`; keeps the rest. `rest`
// may grow by words of static storage.
std::vector<char*> without_help_word(std::vector<char*> rest);

struct FoundVerb {
  const Verb* verb = nullptr;  // null: no verb begins with the first word
  size_t num_words = 0;        // of the verb's name, 1 or 2
};

FoundVerb find_verb(std::span<char*> words);

// Verbs that begin with this word: "data" has several.
std::vector<const Verb*> verbs_of(std::string_view first_word);

// Throws a ConfigError that names the nearest verbs, or those that begin with the first word.
[[noreturn]] void report_unknown_verb(std::span<char*> words);

}  // namespace welkin::apps
