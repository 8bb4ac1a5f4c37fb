// SPDX-License-Identifier: Apache-2.0
// The state_dict() of torch.optim.Adam, AdamW and SGD: {"state": {0: {...}, ...}, "param_groups": [{"params": [0, ...], ...}]}.
#pragma once

#include <memory>

#include "core/archive/torch_file.h"
#include "train/interchange/state.h"

namespace welkin::train::interchange {

using TorchFilePtr = std::shared_ptr<const archive::TorchFile>;

// A tensor of the file, read when it is asked for.
StateTensor torch_tensor(const TorchFilePtr& file, const archive::PickleNode& node, std::string name, std::string group);

// Adds the optimizer's tensors to a state that has the model's; numbers of parameters become names. An optimizer that cannot be
// matched is left out with a note: weights alone are worth having.
void add_torch_optimizer(State& state, const TorchFilePtr& file, const archive::PickleNode& optimizer);

}  // namespace welkin::train::interchange
