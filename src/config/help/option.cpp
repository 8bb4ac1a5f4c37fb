// SPDX-License-Identifier: Apache-2.0
// Options as data from the tables of flags and keys.
#include "config/help/option.h"

#include <algorithm>
#include <array>
#include <utility>

#include "config/schema/value.h"
#include "core/text.h"

namespace welkin::config {
namespace {

std::vector<std::string> words_of(std::string_view choices) {
  std::vector<std::string> words;
  for (const std::string_view word : split(choices, '|')) words.emplace_back(word);
  return words;
}

bool names_a_path(std::string_view metavar) {
  constexpr std::array<std::string_view, 4> kPaths{"FILE", "DIR", "FOLDER", "PATH"};
  return std::find(kPaths.begin(), kPaths.end(), metavar) != kPaths.end();
}

// A metavar that lists its choices: table|yaml. Not "[wait=1,...]" or "all scores".
bool lists_choices(std::string_view metavar) {
  return !metavar.empty() && metavar.find_first_of("[]=<> ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos;
}

void set_choices(Option& option, std::vector<std::string> choices) {
  option.kind = ValueKind::Choice;
  option.choices = std::move(choices);
}

void set_kind(Option& option, const Flag& flag) {
  if (flag.kind == FlagKind::Switch) return;
  option.kind = ValueKind::Any;
  if (names_a_path(flag.metavar)) option.kind = ValueKind::Path;
  if (flag.key != nullptr && !flag.key->choices.empty()) {
    set_choices(option, words_of(flag.key->choices));
  } else if (lists_choices(flag.metavar)) {
    set_choices(option, words_of(flag.metavar));
  }
  if (flag.key != nullptr || flag.is_extra) return;
  if (flag.name == "set") option.kind = ValueKind::Assignment;
  if (flag.name == "config") option.kind = ValueKind::Preset;
  if (flag.name == "tutorial") {
    set_choices(option, words_of(key_at("tutorial").choices));
    std::erase(option.choices, "none");
  }
}

Option option_of(const Flag& flag) {
  Option option{.name = "--" + flag.name,
                .metavar = flag.metavar,
                .help = flag.help + flag.note,
                .group = std::string(group_of(flag)),
                .value_may_be_absent = flag.kind == FlagKind::OptionalValue,
                .has_negation = flag.kind == FlagKind::Switch};
  set_kind(option, flag);
  return option;
}

// The names of a key to which plug-ins may have added.
const std::vector<std::string>* names_for(const Key& key, const KnownNames& known) {
  const std::array<std::pair<std::string_view, const std::vector<std::string>*>, 5> registered{
      {{"model.model", &known.models},
       {"data.dataset", &known.datasets},
       {"loss.loss", &known.losses},
       {"optimizer.optimizer", &known.optimizers},
       {"schedule.schedule", &known.schedules}}};
  for (const auto& [path, names] : registered) {
    if (key.path == path) return names;
  }
  return nullptr;
}

}  // namespace

std::string typed_form(const Flag& flag) {
  if (flag.key != nullptr && !flag.key->is_flag) return cat("--set ", flag.name, "=", flag.metavar);
  if (flag.kind == FlagKind::OptionalValue) return cat("--", flag.name, "[=", flag.metavar, "]");
  return flag.metavar.empty() ? cat("--", flag.name) : cat("--", flag.name, " ", flag.metavar);
}

std::string_view group_of(const Flag& flag) {
  if (flag.is_extra) return "This verb";
  if (flag.key == nullptr) return "Which configuration";
  const std::string_view component = component_of(*flag.key);
  if (component == "switches") return "Speed switches of the tutorials (hints: docs/reference/switches.md)";
  if (component == "data") return "Data";
  if (component == "parallel") return "Several processes";
  if (component == "output") return "Output";
  return "Training";
}

std::vector<Option> configuration_options() {
  std::vector<Option> options;
  for (const Flag& flag : all_flags({})) options.push_back(option_of(flag));
  return options;
}

std::vector<Option> own_options(const std::vector<ExtraFlag>& extra) {
  std::vector<Option> options;
  for (const Flag& flag : all_flags(extra)) {
    if (flag.is_extra) options.push_back(option_of(flag));
  }
  return options;
}

std::vector<Option> key_options(const KnownNames& known) {
  std::vector<Option> options;
  for (const Key& key : schema()) {
    Option option = option_of(flag_of(key));
    option.name = key.flat;
    option.has_negation = false;
    if (is_switch(key)) set_choices(option, {"true", "false"});
    if (const auto* names = names_for(key, known); names != nullptr && !names->empty()) set_choices(option, *names);
    options.push_back(std::move(option));
  }
  return options;
}

}  // namespace welkin::config
