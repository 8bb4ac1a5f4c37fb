// SPDX-License-Identifier: Apache-2.0
// Numbers in 8 bits as dynamic trees: a decade in the leading bits, equal steps inside it in the rest. Dettmers et al., "8-bit
// Optimizers via Block-wise Quantization", arXiv:2110.02861, section 2 and appendix; the values are those of bitsandbytes'
// create_dynamic_map. A block of kCodedBlock numbers is stored as codes and the largest magnitude among them. Torch-free.
#pragma once

#include <cstdint>

namespace welkin::ops {

inline constexpr int64_t kCodedBlock = 256;
inline constexpr int32_t kNumCodes = 256;
// A float in [0, 1] falls, by its exponent and the first seven bits of its fraction, into a cell with one border between codes at
// most. Below 2^-23 everything is zero.
inline constexpr int32_t kFirstCell = (127 - 23) << 7;
inline constexpr int32_t kNumCells = (127 << 7) - kFirstCell + 1;

struct CodeTable {
  float value[kNumCodes] = {};  // ascending, in [-1, 1] or [0, 1]
  int32_t zero = 0;             // the code of 0
  int32_t most_negative = 0;    // how far codes reach below `zero`
  // Of each cell: bits 0 to 7, how far from `zero` the code of its least number is; bits 8 to 23, the low half of the float
  // beyond which the next code is nearer, or 0xffff.
  int32_t cell[kNumCells];
};

const CodeTable& signed_codes();    // an average: 1 has a code, -1 has none
const CodeTable& unsigned_codes();  // an average of squares

}  // namespace welkin::ops
