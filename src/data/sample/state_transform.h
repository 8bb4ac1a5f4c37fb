// SPDX-License-Identifier: Apache-2.0
// Checks that a quantity has the same numbers as an input and as a target. A sample may clip, take logarithms of and normalise
// the two differently. Then a prediction is no next input, a residual adds unlike numbers, and persistence has to be
// converted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/sample/dataset.h"

namespace welkin::data {

// The transforms of target channel `target` that differ from those of input channel `input`, with their keys; empty: none.
std::string difference_of_transforms(const SampleSpec& spec, int64_t target, int64_t input);

// For each target channel its input channel (-1: none). ConfigError naming the channels whose input and target differ so.
// `component` and `what` begin the message.
void check_same_transforms(const SampleSpec& spec, const std::vector<int64_t>& inputs, const char* component, const char* what);

// True if the target's numbers follow from the input's. A clip of the input may have lost some.
bool follows_from_input(const SampleSpec& spec);

}  // namespace welkin::data
