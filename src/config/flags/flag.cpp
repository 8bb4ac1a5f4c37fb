// SPDX-License-Identifier: Apache-2.0
#include "config/flags/flag.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "config/schema/value.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::config {
namespace {

// The axes' own names.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kShortNames{
    {{"tp", "tensor_parallel"}, {"cp", "context_parallel"}, {"pp", "pipeline_parallel"}, {"sp", "sequence_parallel"}}};

std::vector<Flag> steering_flags() {
  return {
      {.name = "yaml_config",
       .metavar = "FILE",
       .help = "file with presets; ./config/UNet.yaml or ./config/ViT.yaml with --tutorial",
       .tutorials = kAllTutorials},
      {.name = "config",
       .metavar = "PRESET",
       .help = "preset, a top-level key of the file; also a folder of the run (default: base)",
       .tutorials = kAllTutorials},
      {.name = "tutorial",
       .metavar = "NAME",
       .help = "tutorial whose rules to follow: sc21, sc22, sc23 or dl4sci25 (default: by the file's keys)"},
      {.name = "set", .metavar = "KEY=VALUE", .help = "any key, flat (lr=1e-3) or dotted (optimizer.lr=1e-3); may be repeated"},
      {.name = "ds_config",
       .metavar = "FILE",
       .help = "DeepSpeed's JSON, mapped key by key (docs/reference/ds_config.md); overrides the preset",
       .listed = Listed::InFull},
      {.name = "dry_run",
       .kind = FlagKind::OptionalValue,
       .metavar = "table|yaml",
       .help = "check and print the configuration, open no data, start nothing"},
      {.name = "check_data",
       .kind = FlagKind::Switch,
       .help = "with --dry_run: open the data; missing paths and mismatches are errors",
       .listed = Listed::InFull},
      {.name = "help",
       .kind = FlagKind::OptionalValue,
       .metavar = "all",
       .help = "print common options; all: print all options",
       .listed = Listed::InFull},
  };
}

std::string metavar_of(const Key& key) {
  if (!key.choices.empty()) return std::string(key.choices);
  const std::string type = type_name(key);
  if (type.starts_with("integer")) return "N";
  if (type.starts_with("number")) return "X";
  if (is_text_list(key)) return "A,B";
  if (std::holds_alternative<Accessor<SpatialRanks>>(key.field)) return "DxHxW";
  if (key.is_folder) return "DIR";
  return key.root.empty() ? "NAME" : "PATH";
}

std::string default_note(const Key& key) {
  if (is_switch(key)) return "";
  const std::string value = value_text(RunConfig{}, key);
  const bool has_default = value != "null" && !(value == "0" && key.range.min > 0);
  if (has_default) return cat(" (default: ", value, key.unit.empty() ? "" : " ", key.unit, ")");
  return key.unit.empty() ? "" : cat(" [", key.unit, "]");
}

}  // namespace

Flag flag_of(const Key& key) {
  return {.name = std::string(key.flat),
          .kind = is_switch(key) ? FlagKind::Switch : FlagKind::Value,
          .metavar = is_switch(key) ? std::string() : metavar_of(key),
          .help = std::string(key.summary),
          .tutorials = key.flag_tutorials,
          .key = &key,
          .note = default_note(key)};
}

namespace {

std::vector<const Flag*> starting_with(const std::vector<Flag>& flags, std::string_view typed, TutorialBits of) {
  std::vector<const Flag*> found;
  for (const Flag& flag : flags) {
    if (flag.name.starts_with(typed) && (of == 0 || (flag.tutorials & of) != 0)) found.push_back(&flag);
  }
  return found;
}

[[noreturn]] void unknown_flag(const std::vector<Flag>& flags, std::string_view typed) {
  std::vector<std::string> names;
  for (const Flag& flag : flags) names.push_back(flag.name);
  std::string remedy = "Run with --help=all for all flags; other keys are set by --set key=value";
  if (const auto near = nearest(typed, names); !near.empty()) remedy = cat("Nearest: --", join(near, ", --"));
  if (find_key(typed) != nullptr) remedy = cat("It is a key without a flag of its own: --set ", typed, "=VALUE");
  throw ConfigError("command line", cat("unknown flag: --", typed), remedy);
}

}  // namespace

std::vector<Flag> all_flags(const std::vector<ExtraFlag>& extra) {
  std::vector<Flag> flags = steering_flags();
  for (const Key& key : schema()) {
    if (key.is_flag) flags.push_back(flag_of(key));
  }
  for (const ExtraFlag& own : extra) {
    const bool taken = std::any_of(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.name == own.name; });
    WELKIN_CHECK(!taken, cat("the verb's flag --", own.name, " exists already"));
    flags.push_back({.name = own.name,
                     .kind = own.metavar.empty()            ? FlagKind::Switch
                             : own.metavar.starts_with("[") ? FlagKind::OptionalValue
                                                            : FlagKind::Value,
                     .metavar = own.metavar,
                     .help = own.help,
                     .is_extra = true,
                     .listed = own.listed,
                     .is_form = own.is_form});
  }
  return flags;
}

const Flag& find_flag(const std::vector<Flag>& flags, std::string_view typed, Tutorial tutorial) {
  for (const auto& [name, stands_for] : kShortNames) {
    if (typed == name) typed = stands_for;
  }
  const auto exact = std::find_if(flags.begin(), flags.end(), [typed](const Flag& flag) { return flag.name == typed; });
  if (exact != flags.end()) return *exact;
  // Without a tutorial, the first round covers all tutorials: their prefixes keep their meaning beside flags of ours.
  const TutorialBits first = tutorial == Tutorial::None ? kAllTutorials : bit_of(tutorial);
  for (const TutorialBits of : {first, kAllTutorials, TutorialBits{0}}) {
    const auto found = starting_with(flags, typed, of);
    if (found.size() == 1) return *found.front();
    if (found.empty()) continue;
    std::vector<std::string> names;
    for (const Flag* flag : found) names.push_back(cat("--", flag->name));
    throw ConfigError("command line", cat("the flag is ambiguous: --", typed, " may be ", join(names, ", ")), "Write it in full");
  }
  unknown_flag(flags, typed);
}

std::string_view tutorial_name(Tutorial tutorial) { return name_of(tutorial); }

}  // namespace welkin::config
