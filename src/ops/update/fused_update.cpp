// SPDX-License-Identifier: Apache-2.0
// All tensors as one list of pieces, so that many small ones cost one parallel region.
#include "ops/update/fused_update.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace welkin::ops {
namespace {

constexpr int64_t kPiece = 16384;  // elements: 256 kB of Adam's four arrays

struct Piece {
  size_t run;
  int64_t begin, count;
};

template <typename Run>
std::vector<Piece> pieces_of(const std::vector<Run>& runs) {
  std::vector<Piece> pieces;
  for (size_t r = 0; r < runs.size(); ++r) {
    for (int64_t begin = 0; begin < runs[r].count; begin += kPiece) {
      pieces.push_back({r, begin, std::min(kPiece, runs[r].count - begin)});
    }
  }
  return pieces;
}

template <typename Body>
void for_pieces(const std::vector<Piece>& pieces, Body&& body) {
  at::parallel_for(0, static_cast<int64_t>(pieces.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) body(static_cast<size_t>(i), pieces[static_cast<size_t>(i)]);
  });
}

}  // namespace

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
