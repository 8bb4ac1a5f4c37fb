// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/attention/attention_tiles.h"

namespace welkin::ops {

const AttentionKernel<float>& attention_kernel_portable() { return kFloatAttention<4>; }

}  // namespace welkin::ops
