// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/convolution/convolution_tiles.h"

namespace welkin::ops {

const ConvolutionKernel<float>& convolution_kernel_avx512() { return kFloatConvolution<16, float>; }
const ConvolutionKernel<float, Bf16>& widened_convolution_kernel_avx512() { return kFloatConvolution<16, Bf16>; }

}  // namespace welkin::ops
