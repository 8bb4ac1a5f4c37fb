// SPDX-License-Identifier: Apache-2.0
// What every verb is given: where to write, and what can be built by name (models, data sets, losses, ... with the plug-ins'
// rows).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace CLI {
class App;
}
namespace welkin::config {
struct VerbHelp;  // config/help/option.h
}
namespace welkin::train {
struct Registries;  // train/learn/registries.h, which only the verbs that build something include
}

namespace welkin::apps {

// Of the verbs that work in one process whatever the run had: evaluate, predict, ckpt import.
inline constexpr int64_t kWorldSize = 1;

struct Application {
  std::ostream& out;                      // results: tables, resolved configurations
  std::ostream& err;                      // notes and warnings
  train::Registries& registries;          // built-in rows, then those of the plug-ins
  std::vector<std::string> options = {};  // as typed before the verb: --plugin, --torch, --bind and their values
  config::VerbHelp* recorded = nullptr;   // where a verb that is asked for help puts it instead of printing it
};

// Options with which a verb takes others: `welkin verify --layouts`.
using Forms = std::vector<const char*>;

// Parses argv with `app`. True: go on. False: help was asked for and stands on application.out; the verb returns 0.
// Throws ConfigError naming the verb when the arguments are wrong.
bool parse_arguments(Application& application, CLI::App& app, int argc, char** argv, const Forms& forms = {});

}  // namespace welkin::apps
