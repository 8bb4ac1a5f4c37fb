// SPDX-License-Identifier: Apache-2.0
// The smallest plug-in: a loss under a new name, made of a shipped one. It says on stderr that it was called.
#include <iostream>

#include "train/learn/registries.h"

extern "C" void welkin_register(welkin::train::Registries& registries) {
  registries.losses.add("plugin_l2", [](const welkin::config::RunConfig&) { return welkin::train::relative_l2(); });
  std::cerr << "the plug-in of the test was registered\n";
}
