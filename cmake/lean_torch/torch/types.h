// SPDX-License-Identifier: Apache-2.0
// Stands for torch's header of this name: its names, without all operators and torch/library.h (README.md).
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <optional>

namespace torch {

using namespace at;
using std::nullopt;
using std::optional;

using Dtype = at::ScalarType;

}  // namespace torch
