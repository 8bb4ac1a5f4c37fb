// SPDX-License-Identifier: Apache-2.0
// A tensor that is stored in a checkpoint as pieces, each in the file of the rank that held it. A piece is not a box: it is a
// run of elements of a part, in the order of the part's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/checkpoint/format/checkpoint_index.h"

namespace welkin::train {

// The shape of each of the `layout.ranks` equal parts of a tensor of `shape`.
std::vector<int64_t> shape_of_part(const std::vector<int64_t>& shape, const PieceLayout& layout);

// The reason why the record's pieces do not make its tensor, each element once; empty if they do.
std::string problem_of_pieces(const TensorRecord& record);

// add_records() adds the files and tensors of some writers to the index. After the last one finish_records() orders the pieces.
void add_records(CheckpointIndex& index, const CheckpointIndex& part);
void finish_records(CheckpointIndex& index);

}  // namespace welkin::train
