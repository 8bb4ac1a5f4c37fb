// SPDX-License-Identifier: Apache-2.0
// Crops that are given as ranges of latitude and longitude. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "data/datasets/field_file.h"

namespace welkin::data {

// Whether the grid's columns go around the globe, so that the first one follows the last.
bool goes_around(const FieldFacts& facts);

struct GridRange {
  int64_t first = 0, count = 0;
};
// The rows whose latitude lies in {south, north}. DataError that names the latitudes of the file where there are none.
GridRange rows_within(const FieldFacts& facts, const std::vector<double>& degrees);
// The columns whose longitude lies in {west, east}, 350 being -10. Beyond the last one where they go on at the first (see
// goes_around); DataError where they do not, or where there are none.
GridRange columns_within(const FieldFacts& facts, const std::vector<double>& degrees);

// Of the window's columns; empty where the file does not say them. Where the window goes around, those before the last column
// count from the other side, so that they rise.
std::vector<double> longitudes_of(const FieldFacts& facts, const FieldWindow& window);

}  // namespace welkin::data
