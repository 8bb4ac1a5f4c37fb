// SPDX-License-Identifier: Apache-2.0
// For gradients that are written below autograd: a graph of such a gradient has its terms as constants, and what is
// differentiated once more is wrong without an error, wherever the input has another way to the result.
#pragma once

#include <string_view>

namespace welkin::ops {

// First in such a backward pass: an error where a graph of the gradient is asked for (create_graph). `what`: whose gradient.
void once_differentiable(std::string_view what);

}  // namespace welkin::ops
