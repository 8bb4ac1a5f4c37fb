// SPDX-License-Identifier: Apache-2.0
// Which of a command line, a preset, a file and the defaults gave a value its value, for tables, notes and errors.
#pragma once

#include <string>

namespace welkin::config {

// Where a value came from, in rising precedence.
enum class Layer { Default, File, Preset, Flag };

struct Origin {
  Layer layer = Layer::Default;
  bool was_integer = false;      // a number that was written without a point, as the tutorials' dump shows it
  std::string text = "default";  // "default", "config/UNet.yaml:12", "--num_epochs", "from global_batch_size"
};

}  // namespace welkin::config
