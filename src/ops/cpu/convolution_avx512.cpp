// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/convolution_tiles.h"

namespace welkin::ops {

const ConvolutionKernel& convolution_kernel_avx512() {
  static constexpr ConvolutionKernel kKernel{add_rows<16>, sum_outer<16>};
  return kKernel;
}

}  // namespace welkin::ops
