// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/attention_tiles.h"

namespace welkin::ops {

const AttentionKernel& attention_kernel_avx2() {
  static constexpr AttentionKernel kKernel{2 * 8, attention_forward<8>, attention_backward<8>};
  return kKernel;
}

}  // namespace welkin::ops
