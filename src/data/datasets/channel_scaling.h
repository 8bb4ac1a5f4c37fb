// SPDX-License-Identifier: Apache-2.0
// The scaling of a box's values when it was made, from the attributes that welkin data ingest --box writes.
#pragma once

#include <string_view>
#include <vector>

#include "data/sample/dataset.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

// One per channel of that array. Empty where it has no attribute `transform`: an `offset` or `scale` alone may mean anything.
// DataError where the three attributes `transform`, `offset`, `scale` do not fit each other or the array.
std::vector<ChannelScaling> scaling_of(const ArrayFile& file, std::string_view array);

}  // namespace welkin::data
