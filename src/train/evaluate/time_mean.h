// SPDX-License-Identifier: Apache-2.0
// The time-mean map of the training part: the forecast that a model has to beat at long leads.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "data/sample/dataset.h"

namespace welkin::train {

// (C, H, W) float32 on the CPU, normalised like the target, from an npy of (1, C, H', W') in the data's units with H' >= H and W'
// >= W (the sample is the north-west corner of the file's grid). Undefined when `path` is empty or no such file exists. Throws
// DataError when the file does not fit.
at::Tensor read_time_mean(const std::string& path, const data::SampleSpec& spec);

}  // namespace welkin::train
