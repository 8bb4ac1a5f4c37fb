// SPDX-License-Identifier: Apache-2.0
// Matmuls for kernels that need gathered rows (GatheredRows). Voxels are grouped by their taps, so that the rows of several
// taps can be concatenated and one matmul sums over all of them.
#pragma once

#include "ops/convolution/convolution_grid.h"
#include "ops/convolution/convolution_panels.h"

namespace welkin::ops {

// Writes the panels of the result in a range of lines. S as in tap_matmuls.
template <typename T, typename S>
void gathered_matmuls(const TapPanels<T, S>& panels, const TapGroups& groups, int64_t first_line, int64_t last_line,
                      PanelRange panels_of_task, const ResultLines<S>& result);

}  // namespace welkin::ops
