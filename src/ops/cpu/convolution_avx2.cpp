// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/convolution_tiles.h"

namespace welkin::ops {

const ConvolutionKernel& convolution_kernel_avx2() {
  static constexpr ConvolutionKernel kKernel{add_rows<8>, sum_outer<8>};
  return kKernel;
}

}  // namespace welkin::ops
