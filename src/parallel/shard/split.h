// SPDX-License-Identifier: Apache-2.0
// Divides a length among parts.
#pragma once

#include <cstdint>
#include <vector>

namespace welkin::parallel {

// Sizes of the parts, in order, larger ones first; no two differ by more than one. ConfigError when size < parts: no part is
// empty.
std::vector<int64_t> balanced_split(int64_t size, int64_t parts);

// The division of the DL4SCI25 tutorial, for comparison: ceil(size / parts) each, the rest last. If nothing is left for the
// last, floor(size / parts) each, the whole remainder last (10 over 6: 1 1 1 1 1 5). ConfigError when size < parts.
std::vector<int64_t> tutorial_split(int64_t size, int64_t parts);

// The begin of a part.
int64_t split_offset(const std::vector<int64_t>& sizes, int64_t part);

}  // namespace welkin::parallel
