// SPDX-License-Identifier: Apache-2.0
// For gradients written below autograd: in a graph of such a gradient its terms are constants, so a second derivative would be
// silently wrong if the input has another path to the result.
#pragma once

#include <string_view>

namespace welkin::ops {

// Call it first in such a backward pass: throws if a graph of the gradient is requested (create_graph). `what`: the operator.
void once_differentiable(std::string_view what);

}  // namespace welkin::ops
