// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/validate.h"
#include "core/text.h"

namespace welkin::config {

void validate_trackers(Draft& draft) {
  for (const std::string& name : draft.config.output.track) {
    if (name == "mlflow" || name == "wandb") continue;
    draft.problems.add(draft.place("output.track"), cat("unknown tracker: ", draft.show("output.track"), ", tracker=", name),
                       "Choose mlflow, wandb or both");
  }
}

}  // namespace welkin::config
