// SPDX-License-Identifier: Apache-2.0
// Context of every verb: the output streams, and the registries (models, data sets, losses, ..., with the rows of
// plug-ins).
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

// World size of the verbs that run in one process, whatever the run had: evaluate, predict, ckpt import.
inline constexpr int64_t kWorldSize = 1;

struct Application {
  std::ostream& out;                      // results: tables, resolved configurations
  std::ostream& err;                      // notes and warnings
  train::Registries& registries;          // built-in rows, then those of the plug-ins
  std::vector<std::string> options = {};  // as typed before the verb: --plugin, --torch, --bind and their values
  config::VerbHelp* recorded = nullptr;   // a verb that is asked for help writes it here instead of printing it
};

// Options with which a verb takes other options: `welkin verify --layouts`.
using Forms = std::vector<const char*>;

// Parses argv with `app`. False: help was requested and is on application.out; the verb then returns 0.
// Throws ConfigError naming the verb when the arguments are wrong.
bool parse_arguments(Application& application, CLI::App& app, int argc, char** argv, const Forms& forms = {});

}  // namespace welkin::apps
