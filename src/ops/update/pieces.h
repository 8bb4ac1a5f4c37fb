// SPDX-License-Identifier: Apache-2.0
// Many tensors as one list of pieces, so that many small ones need one parallel region, and sums have one order.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace welkin::ops {

inline constexpr int64_t kPiece = 16384;  // elements: 256 kB of Adam's four arrays

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

// Two sums per run, to which body(piece, sums) adds for each of its pieces, in the order of pieces for any number of threads.
using RunSums = std::vector<std::array<double, 2>>;

template <typename Run, typename Body>
RunSums sums_of_runs(const std::vector<Run>& runs, Body&& body) {
  const std::vector<Piece> pieces = pieces_of(runs);
  RunSums of_pieces(pieces.size()), of_runs(runs.size());
  for_pieces(pieces, [&](size_t index, const Piece& piece) { body(piece, of_pieces[index].data()); });
  for (size_t i = 0; i < pieces.size(); ++i) {
    for (size_t k = 0; k < 2; ++k) of_runs[pieces[i].run][k] += of_pieces[i][k];
  }
  return of_runs;
}

}  // namespace welkin::ops
