// SPDX-License-Identifier: Apache-2.0
// The weights that a run begins with, from a file of another model: names may be mapped, and parts may be missing.
#pragma once

#include <string>
#include <vector>

#include "train/checkpoint/checkpoint.h"
#include "train/interchange/state.h"

namespace welkin::train::interchange {

// Names that `from` matches become `to`; its stars stand for the matches of `from`'s (core/glob.h). Empty `to`: left out.
struct WeightRename {
  std::string from, to;
};

// "encoder.*=blocks.*,head.*=": for each name the first match counts. "->" means the same as "=". ConfigError for a text of
// another form.
std::vector<WeightRename> parse_renames(const std::string& text);

struct InitialWeights {
  std::vector<WeightRename> renames;
  bool partial = false;  // take the tensors that fit and leave the others as the seed made them
};

// Copies weights of `state` into a model, of which a rank may have parts, as load_weights() does (import_state.h). Returns
// lines to log. CheckpointError if two names become one, if a tensor does not fit and `partial` is not set, and if none fits;
// the model is unchanged then.
std::vector<std::string> take_weights(State state, const InitialWeights& how, const CheckpointGroup& model);

}  // namespace welkin::train::interchange
