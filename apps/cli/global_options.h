// SPDX-License-Identifier: Apache-2.0
// The options before the verb: `welkin --plugin LIB.so train`.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/verbs.h"
#include "config/help/option.h"

namespace welkin::apps {

// The launcher has already used --torch and --bind.
struct GlobalOptions {
  std::vector<std::filesystem::path> plugins;
  bool help = false;
  bool version = false;
  std::vector<std::string> typed;  // all options before the verb, unchanged
  std::vector<char*> rest;         // the verb and its arguments
};

// Parses the program's arguments without its name. ConfigError for an option that is unknown or has no value.
GlobalOptions parse_global_options(std::span<char*> arguments);

const std::vector<config::Option>& global_options();

// `welkin --help`: these options, and the verbs.
void print_usage(std::ostream& out);
// `welkin data --help`: the verbs of one first word; `group` is not empty.
void print_usage(std::ostream& out, const std::vector<const Verb*>& group);

}  // namespace welkin::apps
