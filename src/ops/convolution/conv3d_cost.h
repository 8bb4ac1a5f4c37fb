// SPDX-License-Identifier: Apache-2.0
// Cost of a 3-D convolution, forward; torch-free. Nominal: taps that fall on the padding count.
#pragma once

#include <cstdint>

#include "ops/base/operator_cost.h"

namespace welkin::ops {

// `voxels`: number of kernel positions: of the output for a convolution, of the input for a transposed one.
inline OperatorCost conv3d_cost(int64_t in_channels, int64_t out_channels, int64_t taps, int64_t voxels, int64_t in_voxels,
                                int64_t out_voxels, double element_bytes) {
  const auto cin = static_cast<double>(in_channels);
  const auto cout = static_cast<double>(out_channels);
  const auto k = static_cast<double>(taps);
  return {2.0 * k * cin * cout * static_cast<double>(voxels),
          element_bytes * (cin * static_cast<double>(in_voxels) + cout * static_cast<double>(out_voxels) + k * cin * cout),
          cout * static_cast<double>(out_voxels)};
}

}  // namespace welkin::ops
