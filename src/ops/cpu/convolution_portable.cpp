// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/convolution_tiles.h"

namespace welkin::ops {

const ConvolutionKernel& convolution_kernel_portable() {
  static constexpr ConvolutionKernel kKernel{add_rows<4>, sum_outer<4>};
  return kKernel;
}

}  // namespace welkin::ops
