// SPDX-License-Identifier: Apache-2.0
// The tree of a module as text, in the layout of PyTorch's repr: `Vit(\n  (patch_embed): ...`.
#pragma once

#include <torch/nn/module.h>

#include <string>

namespace welkin::model {

// A leaf prints what its pretty_print says ("Linear(in_features=..."); equal neighbours of a list are folded ("(0-11): 12 x
// ..."). Without final newline.
std::string describe(const torch::nn::Module& module);

}  // namespace welkin::model
