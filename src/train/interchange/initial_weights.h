// SPDX-License-Identifier: Apache-2.0
// The weights that a run begins with, from a file of another model: names may be mapped, and parts may be missing.
#pragma once

#include <string>
#include <vector>

#include "train/checkpoint/checkpoint.h"
#include "train/interchange/state.h"

namespace welkin::train::interchange {

// Names that `from` matches become `to`, whose stars stand for what those of `from` do (core/glob.h). Empty: they are left out.
struct WeightRename {
  std::string from, to;
};

// "encoder.*=blocks.*,head.*=": for each name the first that matches counts. "->" is as good as "=". ConfigError for a text of
// another form.
std::vector<WeightRename> parse_renames(const std::string& text);

struct InitialWeights {
  std::vector<WeightRename> renames;
  bool partial = false;  // take what fits and leave the rest as the seed made it
};

// Copies weights of `state` into a model, of which a rank may have parts, as load_weights() does (import_state.h). Returns what
// to log. CheckpointError where two names become one, where something does not fit and `partial` is not set, and where nothing
// fits; the model is unchanged then.
std::vector<std::string> take_weights(State state, const InitialWeights& how, const CheckpointGroup& model);

}  // namespace welkin::train::interchange
