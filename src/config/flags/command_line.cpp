// SPDX-License-Identifier: Apache-2.0
#include "config/flags/command_line.h"

#include <algorithm>
#include <utility>

#include "config/flags/flag.h"
#include "config/schema/value.h"
#include "config/yaml/yaml_document.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::config {
namespace {

constexpr std::string_view kComponent = "command line";

Tutorial tutorial_from(const std::string& text) {
  const auto tutorial = choice_named<Tutorial>(text);
  if (tutorial && *tutorial != Tutorial::None) return *tutorial;
  throw ConfigError(kComponent, cat("unknown tutorial: --tutorial ", text), "Use sc21, sc22, sc23 or dl4sci25");
}

DryRun dry_run_from(const std::string& text) {
  if (text.empty() || text == "table") return DryRun::Table;
  if (text == "yaml") return DryRun::Yaml;
  throw ConfigError(kComponent, cat("unknown form: --dry_run=", text), "Use --dry_run, --dry_run=table or --dry_run=yaml");
}

Help help_from(const std::string& text) {
  if (text.empty() || text == "true") return Help::Common;
  if (text == "all") return Help::All;
  if (text == "false") return Help::Off;
  throw ConfigError(kComponent, cat("unknown form: --help=", text), "Use --help or --help=all");
}

// One run over the arguments. Flags may depend on --tutorial (prefixes), which is looked up before.
class Parser {
 public:
  Parser(int argc, const char* const* argv, const std::vector<ExtraFlag>& extra) : flags_(all_flags(extra)) {
    for (int i = 1; i < argc; ++i) arguments_.emplace_back(argv[i]);
    result_.program = argc > 0 ? argv[0] : "welkin";
  }

  CommandLine run() {
    find_tutorial();
    while (next_ < arguments_.size()) parse_one(arguments_[next_++]);
    return std::move(result_);
  }

 private:
  void find_tutorial() {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (arguments_[i].starts_with("--tutorial=")) result_.tutorial = tutorial_from(arguments_[i].substr(11));
      if (arguments_[i] == "--tutorial" && i + 1 < arguments_.size()) result_.tutorial = tutorial_from(arguments_[i + 1]);
    }
  }

  void parse_one(const std::string& argument) {
    if (argument == "-h") {
      result_.help = Help::Common;
      return;
    }
    if (!argument.starts_with("--") || argument.size() == 2) {
      throw ConfigError(kComponent, cat("unexpected argument: ", argument),
                        "Flags begin with two dashes: --config short; see --help");
    }
    const size_t equals = argument.find('=');
    std::string name = argument.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = argument.substr(equals + 1);
    if (name.starts_with("no-") || name.starts_with("no_")) return negate(name.substr(3), value);
    const Flag& flag = find_flag(flags_, name, result_.tutorial);
    apply(flag, value_of(flag, value));
  }

  void negate(const std::string& name, const std::optional<std::string>& value) {
    const Flag& flag = find_flag(flags_, name, result_.tutorial);
    if (flag.kind != FlagKind::Switch || value) {
      throw ConfigError(kComponent, cat("only switches have a --no- form: --no-", name), cat("Give --", flag.name, " a value"));
    }
    apply(flag, "false");
  }

  std::string value_of(const Flag& flag, const std::optional<std::string>& given) {
    if (flag.kind == FlagKind::Switch) {
      std::string value = given.value_or("true");
      if (value == "true" || value == "false") return value;
      throw ConfigError(kComponent, cat("a switch is true or false: --", flag.name, "=", value),
                        cat("Use --", flag.name, " or --no-", flag.name));
    }
    if (given) return *given;
    if (flag.kind == FlagKind::OptionalValue) {  // its value is an assignment: --profile wait=1,active=2
      const bool follows = flag.is_extra && next_ < arguments_.size() && arguments_[next_].find('=') != std::string::npos &&
                           !arguments_[next_].starts_with("--");
      return follows ? arguments_[next_++] : "";
    }
    if (next_ >= arguments_.size() || arguments_[next_].starts_with("--")) {
      throw ConfigError(kComponent, cat("a value is missing: --", flag.name), cat("Write --", flag.name, " ", flag.metavar));
    }
    return arguments_[next_++];
  }

  void apply(const Flag& flag, const std::string& value) {
    if (flag.key != nullptr) {
      check_once(flag);
      result_.settings.push_back({std::string(flag.key->path), value, cat("--", flag.name)});
    } else if (flag.is_extra) {
      result_.extra[flag.name] = value;
    } else {
      steer(flag.name, value);
    }
  }

  // A second list would replace the first, while its user means both. The tutorials' programs take the last value of a flag.
  void check_once(const Flag& flag) const {
    const std::string origin = cat("--", flag.name);
    const auto is_same = [&](const Setting& setting) { return setting.flag == origin; };
    if (!is_text_list(*flag.key) || flag.tutorials != 0 || std::ranges::none_of(result_.settings, is_same)) return;
    throw ConfigError(kComponent, cat("a list is given twice: ", origin), cat("Write all of it in one: ", origin, " a,b"));
  }

  void steer(const std::string& name, const std::string& value) {
    if (name == "yaml_config") result_.yaml_config = value;
    if (name == "config") result_.config = value;
    if (name == "ds_config") result_.ds_config = value;
    if (name == "tutorial") result_.tutorial = tutorial_from(value);
    if (name == "set") set_key(value);
    if (name == "dry_run") result_.dry_run = dry_run_from(value);
    if (name == "check_data") result_.check_data = value == "true";
    if (name == "help") result_.help = help_from(value);
  }

  void set_key(const std::string& assignment) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError(kComponent, cat("no assignment: --set ", assignment),
                        "Write --set key=value, for instance --set lr=1e-3");
    }
    const std::string key = assignment.substr(0, equals);
    result_.settings.push_back({key, assignment.substr(equals + 1), cat("--set ", key)});
  }

  std::vector<Flag> flags_;
  std::vector<std::string> arguments_;
  size_t next_ = 0;
  CommandLine result_;
};

}  // namespace

CommandLine parse(int argc, const char* const* argv, const std::vector<ExtraFlag>& extra) {
  return Parser(argc, argv, extra).run();
}

}  // namespace welkin::config
