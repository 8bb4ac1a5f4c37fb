// SPDX-License-Identifier: Apache-2.0
// Numbers in 8 bits as dynamic trees: the leading bits select a decade, the rest equal steps inside it. Dettmers et al., "8-bit
// Optimizers via Block-wise Quantization", arXiv:2110.02861, section 2 and appendix; the values are those of bitsandbytes'
// create_dynamic_map. A block of kCodedBlock numbers is stored as codes and the largest magnitude among them. Torch-free.
#pragma once

#include <cstdint>

namespace welkin::ops {

inline constexpr int64_t kCodedBlock = 256;
inline constexpr int32_t kNumCodes = 256;
// Exponent and first seven fraction bits of a float in [0, 1] select a cell, which contains at most one border between codes.
// Everything below 2^-23 is zero.
inline constexpr int32_t kFirstCell = (127 - 23) << 7;
inline constexpr int32_t kNumCells = (127 << 7) - kFirstCell + 1;

struct CodeTable {
  float value[kNumCodes] = {};  // ascending, in [-1, 1] or [0, 1]
  int32_t zero = 0;             // the code of 0
  int32_t most_negative = 0;    // number of codes below `zero`
  // Per cell: bits 0 to 7, the distance from `zero` of its smallest number's code; bits 8 to 23, the low half of the float
  // beyond which the next code is nearer, or 0xffff.
  int32_t cell[kNumCells];
};

const CodeTable& signed_codes();    // for an average: 1 has a code, -1 has none
const CodeTable& unsigned_codes();  // for an average of squares

}  // namespace welkin::ops
