// SPDX-License-Identifier: Apache-2.0
// The flags of a verb as a table: those of the schema, those that control how the configuration is read, and the verb's own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/flags/command_line.h"
#include "config/schema/key.h"

namespace welkin::config {

enum class FlagKind { Value, Switch, OptionalValue };  // OptionalValue: --dry_run or --dry_run=yaml

struct Flag {
  std::string name;  // without dashes
  FlagKind kind = FlagKind::Value;
  std::string metavar = {};
  std::string help = {};
  TutorialBits tutorials = 0;  // the tutorials whose programs take it; 0 = ours
  const Key* key = nullptr;    // the row of the schema that it sets; null for the others
  bool is_extra = false;       // the verb's own
  std::string note = {};       // the end of its help: default and unit
  Listed listed = Listed::Always;
  bool is_form = false;
};

std::vector<Flag> all_flags(const std::vector<ExtraFlag>& extra);

// The flag --flat of a key, even if the key has no flag (is_flag).
Flag flag_of(const Key& key);

// The flag that `typed` (without dashes) names: an exact match, else the only flag with this prefix among those of `tutorial`,
// then of all tutorials, then of all. Throws ConfigError with the candidates or the nearest names.
const Flag& find_flag(const std::vector<Flag>& flags, std::string_view typed, Tutorial tutorial);

// "sc21" and so on; "none" for None.
std::string_view tutorial_name(Tutorial tutorial);

}  // namespace welkin::config
