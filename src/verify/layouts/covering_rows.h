// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace welkin::verify {

// Rows of a table of options: any `strength` columns have in them every combination of values that they have in the table (a
// covering array). Greedy, as in Cohen et al., "The AETG System" (1997): after the rows of `chosen`, always a row that has most
// of the combinations left, the first of several. Returns indexes, those of `chosen` first. All rows have as many columns.
std::vector<size_t> covering_rows(const std::vector<std::vector<int>>& rows, size_t strength, std::vector<size_t> chosen = {});

}  // namespace welkin::verify
