// SPDX-License-Identifier: Apache-2.0
// Quarters of the year by the month of the valid time.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace welkin::train {

inline constexpr std::array<std::string_view, 5> kSeasons{"all", "DJF", "MAM", "JJA", "SON"};

// A place in kSeasons, from 1; `month` from 1.
constexpr size_t season_of_month(int month) { return 1 + static_cast<size_t>(month % 12) / 3; }

}  // namespace welkin::train
