// SPDX-License-Identifier: Apache-2.0
// Units of time. Torch-free.
#pragma once

#include <optional>
#include <string_view>

namespace welkin::data {

// The length of a unit of time that has one in every calendar, as UDUNITS spells it: "hours", "hour", "h". Words of one or two
// letters in lower case alone: "Ms" are megaseconds.
std::optional<double> seconds_of_unit(std::string_view unit);

}  // namespace welkin::data
