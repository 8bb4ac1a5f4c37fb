// SPDX-License-Identifier: Apache-2.0
// The tensors of the pipeline stages for a checkpoint: the names of all, and a tensor of any stage on the first one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "parallel/comm/group.h"
#include "train/checkpoint/whole_tensors.h"

namespace welkin::train {

// One text of each member, in their order. Every rank calls it.
std::vector<std::string> texts_of_all(const parallel::Group& group, const std::string& text);

struct StagedTensor {
  std::string name;            // without line breaks and tabs
  std::vector<int64_t> shape;  // of the whole
  at::ScalarType type = at::kFloat;
  int64_t stage = 0;  // place in the group of the first stage that has it
};

// All tensors that members have, in one order on all: sorted by the first stage that has them, then as in that stage.
std::vector<StagedTensor> tensors_of_stages(const parallel::Group& stages, const std::vector<StagedTensor>& own);

// The whole tensor on members of the first stage, undefined on others. `whole` is called on those members that have it and are
// asked. Every rank of the pipeline calls it for the same tensors in the same order.
at::Tensor whole_on_first_stage(const TensorLayout& layout, const StagedTensor& tensor, const std::function<at::Tensor()>& whole);

}  // namespace welkin::train
