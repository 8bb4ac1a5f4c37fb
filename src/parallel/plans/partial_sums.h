// SPDX-License-Identifier: Apache-2.0
// Which gradients are partial sums, followed along the sites of a model in the order of its forward pass.
#pragma once

#include "parallel/mesh/axis.h"

namespace welkin::parallel {

// The axes over which the parameters of a place see a part of what their gradient is a sum over. A style's enter() changes it for
// its own site and what follows, its leave() for what follows alone.
struct PartialSums {
  AxisSet input;      // the input of the model is split over these, from its beginning to its end
  AxisSet tokens{};   // besides, the tokens of this place
  AxisSet section{};  // between the input of column-parallel layers and their row-parallel one: a part of the features

  AxisSet all() const { return input | tokens | section; }
};

}  // namespace welkin::parallel
