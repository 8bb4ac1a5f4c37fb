// SPDX-License-Identifier: Apache-2.0
// Names in the registries of the upper layers, handed in: a configuration knows no model and no data set itself.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace welkin::config {

// Names that the registries hold, for checking `model`, `dataset`, `loss`, `optimizer` and `schedule`; an empty list means: do
// not check.
struct KnownNames {
  std::vector<std::string> models, datasets, losses, optimizers, schedules;
  std::map<std::string, std::string> default_losses = {};  // by model, where no key `loss` is given
};

}  // namespace welkin::config
