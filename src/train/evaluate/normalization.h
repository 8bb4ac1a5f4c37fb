// SPDX-License-Identifier: Apache-2.0
// What takes a model's input and output from and to physical values, for programs that use exported weights.
#pragma once

#include <string>

#include "data/sample/dataset.h"

namespace welkin::train {

// JSON: {"input": {"channels", "units", "mean", "std", "clip", "log1p", "transform", "offset", "scale"}, "target": {...}}. A
// value x of a file becomes (y - mean) / std, where y = log(1 + clip(x)) for the channels in "log1p" and x for others; x is
// (transform(physical) - offset) / scale. Lists are empty where there is no such step.
std::string normalization_json(const data::SampleSpec& spec);

}  // namespace welkin::train
