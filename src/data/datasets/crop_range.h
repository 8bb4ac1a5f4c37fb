// SPDX-License-Identifier: Apache-2.0
// Crops that are given as ranges of latitude and longitude. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "data/datasets/field_file.h"

namespace welkin::data {

// True if the grid's columns go around the globe, so that the first one follows the last.
bool goes_around(const FieldFacts& facts);

struct GridRange {
  int64_t first = 0, count = 0;
};
// The rows whose latitude lies in {south, north}. DataError that names the latitudes of the file where there are none.
GridRange rows_within(const FieldFacts& facts, const std::vector<double>& degrees);
// The columns whose longitude lies in {west, east}; 350 means -10. They may go on at the first column where the grid goes
// around; DataError where it does not, or where there are none.
GridRange columns_within(const FieldFacts& facts, const std::vector<double>& degrees);

// Longitudes of the window's columns, monotonic; empty where the file does not say them. In a window that goes around, those up
// to the grid's last column are moved by a full turn.
std::vector<double> longitudes_of(const FieldFacts& facts, const FieldWindow& window);

}  // namespace welkin::data
