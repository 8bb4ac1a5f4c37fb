// SPDX-License-Identifier: Apache-2.0
// Identifies this program, for the check that all ranks run the same.
#pragma once

#include <string>

namespace welkin::launch {

// Hash of the executable and of the shared object that holds this code, as sixteen digits. Throws DataError.
std::string program_hash();

}  // namespace welkin::launch
