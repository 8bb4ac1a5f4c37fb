// SPDX-License-Identifier: Apache-2.0
// A small array that is held in memory, as doubles. Torch-free.
#pragma once

#include <vector>

#include "data/storage/stored_array.h"

namespace welkin::data {

// `values` are row-major and fill the shape.
StoredArrayPtr make_memory_array(ArrayFacts facts, std::vector<double> values);

}  // namespace welkin::data
