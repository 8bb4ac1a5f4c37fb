// SPDX-License-Identifier: Apache-2.0
// Where the elements of a part of a tensor stand in the memory of the whole. What tensor parallelism leaves to a rank is runs of
// one length, of which every `parts`-th is the rank's; a piece of that begins anywhere. Torch-free.
#pragma once

#include <cstdint>
#include <limits>

namespace welkin::ops {

struct PartRuns {
  int64_t begin = 0;   // of the piece, in the part's memory
  int64_t length = 0;  // of a run; 0: the part is the whole
  int64_t parts = 1, part = 0;

  // Of an element of the piece, in the memory of the whole.
  int64_t place_of(int64_t element) const {
    const int64_t own = begin + element;
    return length == 0 ? own : (own / length * parts + part) * length + own % length;
  }
  // How many elements stand one after the other there, from this one on.
  int64_t left_in_run(int64_t element) const {
    return length == 0 ? std::numeric_limits<int64_t>::max() : length - (begin + element) % length;
  }
};

}  // namespace welkin::ops
