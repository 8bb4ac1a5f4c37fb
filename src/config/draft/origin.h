// SPDX-License-Identifier: Apache-2.0
// The origin of a value: command line, preset, file or default, for tables, notes and errors.
#pragma once

#include <string>

namespace welkin::config {

// Origins of a value, in rising precedence.
enum class Layer { Default, File, Preset, Flag };

struct Origin {
  Layer layer = Layer::Default;
  bool was_integer = false;      // a number that was written without a point, as the tutorials' dump shows it
  std::string text = "default";  // "default", "config/UNet.yaml:12", "--num_epochs", "from global_batch_size"
};

}  // namespace welkin::config
