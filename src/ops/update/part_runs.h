// SPDX-License-Identifier: Apache-2.0
// The places of a part's elements in the memory of the whole tensor. A tensor-parallel part consists of runs of equal length,
// every `parts`-th of which belongs to the rank; a piece of the part may begin anywhere. Torch-free.
#pragma once

#include <cstdint>
#include <limits>

namespace welkin::ops {

struct PartRuns {
  int64_t begin = 0;   // of the piece, in the part's memory
  int64_t length = 0;  // of a run; 0: the part is the whole
  int64_t parts = 1, part = 0;

  // The place of an element of the piece in the memory of the whole.
  int64_t place_of(int64_t element) const {
    const int64_t own = begin + element;
    return length == 0 ? own : (own / length * parts + part) * length + own % length;
  }
  // Number of elements that are contiguous there, from this one on.
  int64_t left_in_run(int64_t element) const {
    return length == 0 ? std::numeric_limits<int64_t>::max() : length - (begin + element) % length;
  }
};

}  // namespace welkin::ops
