// SPDX-License-Identifier: Apache-2.0
// A tensor that stands in a checkpoint as pieces, each in the file of the rank that kept it. A piece is no box: it is a run of
// the elements of a part in the order of the part's memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint_index.h"

namespace welkin::train {

// A tensor of `shape`, cut into `layout.ranks` parts of equal shape.
std::vector<int64_t> shape_of_part(const std::vector<int64_t>& shape, const PieceLayout& layout);

// Why the record's pieces do not make its tensor, each element once; empty where they do.
std::string problem_of_pieces(const TensorRecord& record);

// Row-major, on the CPU. `fill` copies a piece into a tensor, (count). The record has no problem.
at::Tensor whole_of_pieces(const TensorRecord& record, at::ScalarType type,
                           const std::function<void(const TensorPiece&, const at::Tensor&)>& fill);

}  // namespace welkin::train
