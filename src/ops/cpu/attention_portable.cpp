// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/attention_tiles.h"

namespace welkin::ops {

const AttentionKernel& attention_kernel_portable() {
  static constexpr AttentionKernel kKernel{2 * 4, attention_forward<4>, attention_backward<4>};
  return kKernel;
}

}  // namespace welkin::ops
