// SPDX-License-Identifier: Apache-2.0
// Checks that data held for a whole run fit into this machine's memory. It is checked before the allocation, since an
// overcommitting system would end the process later instead.
#pragma once

#include <cstdint>
#include <string>

namespace welkin::data {

// DataError naming `what`, the need and the free memory, unless a tenth of the free memory is left.
void check_fits_memory(uint64_t bytes, const std::string& what);

}  // namespace welkin::data
