// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/attention/attention_tiles.h"

namespace welkin::ops {

const AttentionKernel<float>& attention_kernel_avx2() { return kFloatAttention<8>; }

}  // namespace welkin::ops
