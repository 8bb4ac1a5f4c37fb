// SPDX-License-Identifier: Apache-2.0
// A local operator, such as a convolution or a pooling, applied to a block of a sample piece by piece.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "ops/convolution/convolution_grid.h"

namespace welkin::ops {

struct PiecePlacement {
  BoxShape padding{0, 0, 0};      // what the operator still pads, at the beginning of each axis
  BoxShape padding_end{0, 0, 0};  // and at its end
  at::Tensor into{};              // where the result goes; undefined: into memory of its own
  bool activates = false;         // true: an activation that follows the operator is applied, too
};

struct PieceKernel {
  // The result (B, out, extents) for boxes x (B, C, D, H, W).
  std::function<at::Tensor(const std::vector<at::Tensor>& x, const PiecePlacement& placement)> place;
  // Applies the activation in place. Empty: there is none.
  std::function<at::Tensor(at::Tensor made)> activate{};
  // Memory for the result (B, out, cells) of a whole block, into which place() can write pieces. Empty, or an undefined tensor:
  // it cannot.
  std::function<at::Tensor(const std::vector<at::Tensor>& x, const BoxShape& cells)> memory{};
};

}  // namespace welkin::ops
