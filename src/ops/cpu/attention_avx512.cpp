// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/attention_tiles.h"

namespace welkin::ops {

const AttentionKernel& attention_kernel_avx512() {
  static constexpr AttentionKernel kKernel{2 * 16, attention_forward<16>, attention_backward<16>};
  return kKernel;
}

}  // namespace welkin::ops
