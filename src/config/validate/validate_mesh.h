// SPDX-License-Identifier: Apache-2.0
// Checks of the mesh of ranks: its order, its sizes, and the keys that exclude an axis.
#pragma once

#include <cstdint>

#include "config/draft/draft.h"

namespace welkin::config {

// True if no size of an axis has been reported yet.
bool is_mesh_sound(const Draft& draft);

void validate_mesh(Draft& draft, int64_t world_size);

}  // namespace welkin::config
