// SPDX-License-Identifier: Apache-2.0
#include "ops/update/fused_update.h"

#include "ops/update/pieces.h"

namespace welkin::ops {

void fused_adam(const std::vector<UpdateSpan>& runs, const AdamRule& rule) {
  const UpdateKernel& kernel = update_kernel(instruction_set());
  for_pieces(pieces_of(runs), [&](size_t /*index*/, const Piece& piece) {
    const UpdateSpan& run = runs[piece.run];
    kernel.adam(rule, piece.count, run.value + piece.begin, run.gradient + piece.begin, run.first + piece.begin,
                run.second + piece.begin);
  });
}

void fused_sgd(const std::vector<UpdateSpan>& runs, const SgdRule& rule) {
  const UpdateKernel& kernel = update_kernel(instruction_set());
  for_pieces(pieces_of(runs), [&](size_t /*index*/, const Piece& piece) {
    const UpdateSpan& run = runs[piece.run];
    kernel.sgd(rule, piece.count, run.value + piece.begin, run.gradient + piece.begin, run.first + piece.begin);
  });
}

double sum_of_squares(const std::vector<FloatSpan>& runs) {
  const UpdateKernel& kernel = update_kernel(instruction_set());
  const std::vector<Piece> pieces = pieces_of(runs);
  std::vector<double> sums(pieces.size());
  for_pieces(pieces, [&](size_t index, const Piece& piece) {
    sums[index] = kernel.square_sum(runs[piece.run].data + piece.begin, piece.count);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace welkin::ops
