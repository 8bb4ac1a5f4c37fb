// SPDX-License-Identifier: Apache-2.0
// The program's command line as data: verbs, their options and the values of each. Completion scripts and the manual are made
// from it. It knows neither verbs nor the library that they parse their options with: apps/cli/ fills it in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/draft/known_names.h"
#include "config/flags/command_line.h"
#include "config/flags/flag.h"

namespace welkin::config {

// Values that a shell can offer after an option: none since it takes no value; none since anything may follow; its choices;
// files; KEY=VALUE; the presets of the file given with --yaml_config.
enum class ValueKind { None, Any, Choice, Path, Assignment, Preset };

struct Option {
  std::string name;             // "--device"; of a key "lr"
  std::string short_name = {};  // "-n"
  std::string metavar = {};
  std::string help = {};
  std::string group = {};
  ValueKind kind = ValueKind::None;
  std::vector<std::string> choices = {};
  bool value_may_be_absent = false;  // --dry_run and --dry_run=yaml
  bool has_negation = false;         // also --no-name
};

struct VerbHelp {
  std::string name;  // "data inspect"; for a form the argument that selects it: "nbody", "--tiles"
  std::string summary;
  std::string arguments = {};           // the words after it, as its usage says: "FILE..."
  std::vector<Option> options = {};     // without those of a configuration
  bool takes_configuration = false;     // it has those too
  bool starts_verb = false;             // welkin launch -- VERB
  bool takes_paths = false;             // files or folders follow it
  std::vector<std::string> words = {};  // words that follow it: bash, zsh
  std::vector<VerbHelp> forms = {};     // with other options
};

struct ProgramHelp {
  std::string version;
  std::vector<Option> options;        // before the verb
  std::vector<Option> configuration;  // of every verb that takes one
  std::vector<Option> keys;           // of --set
  std::vector<VerbHelp> verbs;
};

// The flag as a user types it: "--device auto|cpu|cuda", "--dry_run[=table|yaml]", "--set lr=X".
std::string typed_form(const Flag& flag);
// The title under which --help lists it.
std::string_view group_of(const Flag& flag);

std::vector<Option> configuration_options();
std::vector<Option> own_options(const std::vector<ExtraFlag>& extra);
// The keys of --set; `known` completes those that name a model, a loss and so on.
std::vector<Option> key_options(const KnownNames& known);

}  // namespace welkin::config
