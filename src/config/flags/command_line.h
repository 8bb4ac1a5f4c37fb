// SPDX-License-Identifier: Apache-2.0
// The command line of the verbs that take a configuration (train, evaluate, predict, bench): every flag of the four tutorials
// with its name and default, and our own. Parsing only records what was given, in order; config/resolve/resolve.h gives it a
// meaning.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/run_config.h"

namespace welkin::config {

enum class DryRun { Off, Table, Yaml };
enum class Help { Off, Common, All };  // --help, --help=all

enum class Listed { Always, InFull };  // in --help and --help=all, or in the latter alone

// A key that was given on the command line. `key` is a flat or dotted name, `text` its value as typed, `flag` what the user wrote
// ("--num_epochs",
// "--set num_epochs").
struct Setting {
  std::string key;
  std::string text;
  std::string flag;
};

// A flag of one verb alone, e.g. {"checkpoint", "DIR", "folder step_N to load"}. Without a metavar it is a switch.
struct ExtraFlag {
  std::string name;
  std::string metavar;
  std::string help;
  Listed listed = Listed::Always;
  bool is_form = false;  // with it the verb takes other flags: welkin bench --tiles
};

struct CommandLine {
  std::string program;                       // argv[0]: "welkin train"
  Tutorial tutorial = Tutorial::None;        // --tutorial
  std::optional<std::string> yaml_config;    // --yaml_config as typed
  std::optional<std::string> config;         // --config: the preset
  std::optional<std::string> ds_config;      // --ds_config: DeepSpeed's JSON
  std::vector<Setting> settings;             // in the order given; a later one wins
  std::map<std::string, std::string> extra;  // the verb's own flags by name; a switch holds "true" or "false"
  DryRun dry_run = DryRun::Off;
  bool check_data = false;
  Help help = Help::Off;  // -h or --help was given: print help_text() (config/help/help_text.h) and return 0
};

// Accepts --x v, --x=v, unique prefixes, --no-x for switches, and a value that begins with one '-'. Throws ConfigError for an
// unknown or ambiguous flag (with the nearest names), a missing value, a value of a switch other than true or false, and a
// positional argument.
CommandLine parse(int argc, const char* const* argv, const std::vector<ExtraFlag>& extra = {});

}  // namespace welkin::config
