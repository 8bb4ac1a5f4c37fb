// SPDX-License-Identifier: Apache-2.0
#include "ops/update/lean_update.h"

#include <algorithm>

#include "ops/update/pieces.h"

namespace welkin::ops {

static_assert(kPiece % kCodedBlock == 0, "a piece has whole blocks");

void fused_bf16_adam(const std::vector<Bf16Span>& runs, const AdamRule& rule, uint64_t counter) {
  const LeanUpdateKernel& kernel = update_kernel(instruction_set()).lean;
  for_pieces(pieces_of(runs), [&](size_t /*index*/, const Piece& piece) {
    const Bf16Span& run = runs[piece.run];
    const int64_t end = piece.begin + piece.count;
    for (int64_t i = piece.begin; i < end;) {
      const int64_t count = std::min(end - i, run.place.left_in_run(i));
      kernel.bf16_adam(rule, {.stream = run.stream, .counter = counter}, run.place.place_of(i), count, run.value + i,
                       run.gradient + i, run.average + i, run.square + i);
      i += count;
    }
  });
}

void fused_coded_adam(const std::vector<CodedSpan>& runs, const AdamRule& rule) {
  const LeanUpdateKernel& kernel = update_kernel(instruction_set()).lean;
  for_pieces(pieces_of(runs), [&](size_t /*index*/, const Piece& piece) {
    const CodedSpan& run = runs[piece.run];
    const int64_t block = piece.begin / kCodedBlock;
    kernel.coded_adam(rule, signed_codes(), unsigned_codes(), piece.count, run.value + piece.begin, run.gradient + piece.begin,
                      run.average + piece.begin, run.average_scale + block, run.square + piece.begin, run.square_scale + block);
  });
}

}  // namespace welkin::ops
