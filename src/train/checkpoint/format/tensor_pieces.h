// SPDX-License-Identifier: Apache-2.0
// A tensor that stands in a checkpoint as pieces, each in the file of the rank that kept it. A piece is no box: it is a run of
// the elements of a part in the order of the part's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/checkpoint/format/checkpoint_index.h"

namespace welkin::train {

// A tensor of `shape`, cut into `layout.ranks` parts of equal shape.
std::vector<int64_t> shape_of_part(const std::vector<int64_t>& shape, const PieceLayout& layout);

// Why the record's pieces do not make its tensor, each element once; empty where they do.
std::string problem_of_pieces(const TensorRecord& record);

// The files and tensors of a part of the writers become the index's, too; then, when all have come, the pieces get their order.
void add_records(CheckpointIndex& index, const CheckpointIndex& part);
void finish_records(CheckpointIndex& index);

}  // namespace welkin::train
