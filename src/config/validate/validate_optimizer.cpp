// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "config/validate/validate.h"
#include "core/text.h"

namespace welkin::config {

void validate_optimizer(Draft& draft) {
  const OptimizerConfig& optimizer = draft.config.optimizer;
  const std::string& name = optimizer.optimizer;
  const auto refuse = [&](std::string_view path, std::string_view what, std::string_view other, std::string_view remedy) {
    draft.problems.add(draft.place(path), cat(what, ": ", draft.show(path), ", ", draft.show(other)), std::string(remedy));
  };
  constexpr std::string_view kName = "optimizer.optimizer", kState = "optimizer.optimizer_state";
  const bool has_state = draft.is_sound({kState}) && optimizer.optimizer_state != OptimizerState::Fp32;
  for (const std::string_view other : {"SGD", "Lion", "LAMB", "LARS", "Adafactor", "Muon"}) {
    if (has_state && name == other) refuse(kState, "this optimizer keeps float32", kName, "Only Adam and AdamW keep less");
  }
  if (optimizer.ema_validate && optimizer.ema_decay == 0) {
    refuse("optimizer.ema_validate", "there is no moving average of weights to look at", "optimizer.ema_decay",
           "Say for instance ema_decay: 0.999");
  }
  if (optimizer.lamb_max_ratio > 0 && optimizer.lamb_min_ratio > optimizer.lamb_max_ratio) {
    refuse("optimizer.lamb_min_ratio", "is above the largest quotient", "optimizer.lamb_max_ratio", "Say a smaller one");
  }
}

}  // namespace welkin::config
