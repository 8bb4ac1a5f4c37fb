// SPDX-License-Identifier: Apache-2.0
// Views of a stored array, without a copy. Torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/storage/stored_array.h"

namespace welkin::data {

// Axis i of the view is axis order[i] of the array. Axes of length 1 may be left out.
StoredArrayPtr permuted(StoredArrayPtr array, const std::vector<size_t>& order);

// The array (time, channel, ...) with other channels: channel i is channel places[i] of the array, or NaN where that is -1.
StoredArrayPtr with_channels(StoredArrayPtr array, std::vector<int64_t> places);

// A copy of all values in memory, as float32. The caller has checked that it fits.
StoredArrayPtr held(const StoredArray& array);

// The array with its axes in the order of `wanted`, each given by the names that it may have (compared without case). The array
// itself where the file does not name its axes, or by names unknown here.
StoredArrayPtr with_axes(StoredArrayPtr array, const std::vector<std::vector<std::string_view>>& wanted);

}  // namespace welkin::data
