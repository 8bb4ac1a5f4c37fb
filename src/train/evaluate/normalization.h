// SPDX-License-Identifier: Apache-2.0
// How to convert a model's input and output from and to physical values, for programs that use exported weights.
#pragma once

#include <string>

#include "data/sample/dataset.h"

namespace welkin::train {

// JSON: {"input": {"channels", "units", "mean", "std", "clip", "log1p", "transform", "offset", "scale", "log1p_eps"},
// "target": {...}}. A value x of a file becomes (y - mean) / std, where y = log(1 + clip(x) / eps) for the channels in "log1p"
// (eps: theirs of "log1p_eps", 1 where that is empty) and clip(x) for others; x is
// (transform(physical) - offset) / scale. Lists are empty where there is no such step.
std::string normalization_json(const data::SampleSpec& spec);

}  // namespace welkin::train
