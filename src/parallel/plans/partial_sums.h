// SPDX-License-Identifier: Apache-2.0
// Determines which gradients are partial sums, along the sites of a model in the order of its forward pass.
#pragma once

#include "parallel/mesh/axis.h"

namespace welkin::parallel {

// The axes over which a parameter's gradient is a partial sum, at one place of the model. A style's enter() changes them for
// its own site and those behind it, its leave() only for those behind it.
struct PartialSums {
  AxisSet input;      // axes over which the model's input is split, from its beginning to its end
  AxisSet tokens{};   // further axes that split the tokens of this place
  AxisSet section{};  // axes between column-parallel layers and their row-parallel one: a part of the features

  AxisSet all() const { return input | tokens | section; }
};

}  // namespace welkin::parallel
