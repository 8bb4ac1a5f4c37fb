// SPDX-License-Identifier: Apache-2.0
// Persistence: the newest input as the forecast, in the target's numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include "data/sample/dataset.h"

namespace welkin::train {

// Whether the newest input step holds channels of the target at an earlier time (data::earlier_channels() says which).
bool has_persistence(const data::SampleSpec& spec);

// (B, C, ...) of an input -> (B, C', ...), as the target is clipped, logarithmic and normalised. NaN, not defined: a channel of
// which there is no earlier state, or of which the input was clipped to a range that the target goes beyond.
at::Tensor persistence_of(const data::SampleSpec& spec, const at::Tensor& input);

}  // namespace welkin::train
