// SPDX-License-Identifier: Apache-2.0
// Whether what is to be held for a whole run fits into this machine's memory; asked before it is allocated, since an
// overcommitting system would end the process later instead.
#pragma once

#include <cstdint>
#include <string>

namespace welkin::data {

// DataError naming `what`, the need and what is free, unless a tenth of what is free stays.
void check_fits_memory(uint64_t bytes, const std::string& what);

}  // namespace welkin::data
