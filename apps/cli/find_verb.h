// SPDX-License-Identifier: Apache-2.0
// Which verb is meant by the words behind the program's own options.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "apps/cli/verbs.h"

namespace welkin::apps {

// `help data ingest` as `data ingest --help`, `help` as `--help`, `version` as `--version`; other words as they are. `rest` may
// grow by words of the program's.
std::vector<char*> without_help_word(std::vector<char*> rest);

struct FoundVerb {
  const Verb* verb = nullptr;  // null: the first word belongs to no verb
  size_t num_words = 0;        // of the verb's name, 1 or 2
};

FoundVerb find_verb(std::span<char*> words);

// Verbs that begin with this word: "data" has several.
std::vector<const Verb*> verbs_of(std::string_view first_word);

// ConfigError that names the nearest verbs, or those that begin with the first word.
[[noreturn]] void report_unknown_verb(std::span<char*> words);

}  // namespace welkin::apps
