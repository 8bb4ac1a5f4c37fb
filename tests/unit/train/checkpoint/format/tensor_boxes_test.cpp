// SPDX-License-Identifier: Apache-2.0
// Pieces of one layout from those of another, whatever the orders of memory and the splits: every element once, and no other.
#include "train/checkpoint/format/tensor_boxes.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/text.h"
#include "parallel/shard/shards.h"
#include "scratch_folder.h"
#include "train/checkpoint/checkpoint.h"

namespace welkin::train {
namespace {

struct ManyPieces {
  PieceLayout pieces;
  std::vector<int64_t> cuts;  // of each part's memory: pieces end there
};

struct Piece {
  PiecePlace place;
  at::Tensor values;  // (count)
};

// As a rank has it: cut out of the whole by what trains with it.
std::vector<Piece> pieces_of(const at::Tensor& whole, const ManyPieces& layout) {
  std::vector<Piece> pieces;
  for (int64_t part = 0; part < layout.pieces.ranks; ++part) {
    const at::Tensor own = layout.pieces.ranks == 1
                               ? whole
                               : parallel::shard_of(whole, {layout.pieces.dim, layout.pieces.blocks}, part, layout.pieces.ranks);
    const at::Tensor memory = own.permute(layout.pieces.order).contiguous().view({-1});
    int64_t begin = 0;
    std::vector<int64_t> ends = layout.cuts;
    ends.push_back(memory.numel());
    for (const int64_t end : ends) {
      if (end <= begin || end > memory.numel()) continue;
      pieces.push_back({{whole.sizes().vec(), layout.pieces, part, begin}, memory.narrow(0, begin, end - begin).clone()});
      begin = end;
    }
  }
  return pieces;
}

// All that a piece of one layout takes out of those of the other.
at::Tensor taken(const Piece& wanted, const std::vector<Piece>& stored, int64_t& copied) {
  at::Tensor values = at::full({wanted.values.numel()}, -1.0, at::kFloat);
  for (const Piece& piece : stored) {
    for (const PieceBox& from : boxes_of_piece(piece.place, piece.values.numel())) {
      for (const PieceBox& to : boxes_of_piece(wanted.place, wanted.values.numel())) {
        if (have_common(from, to)) copied += copy_common(from, piece.values, to, values);
      }
    }
  }
  return values;
}

TEST(TensorBoxes, MakeThePiecesOfOneLayoutFromThoseOfAnother) {
  const at::Tensor whole = at::arange(12 * 4 * 6, at::kFloat).view({12, 4, 6});
  const std::vector<ManyPieces> layouts = {
      {{.order = {0, 1, 2}}, {}},
      {{.order = {0, 1, 2}}, {1, 24, 100, 101}},
      {{.order = {2, 0, 1}}, {50, 144}},
      {{.order = {1, 2, 0}, .dim = 0, .blocks = 3, .ranks = 2}, {7, 60}},
      {{.order = {0, 2, 1}, .dim = 1, .blocks = 1, .ranks = 4}, {13}},
      {{.order = {2, 1, 0}, .dim = 2, .blocks = 3, .ranks = 2}, {31, 32, 33}},
  };
  for (size_t from = 0; from < layouts.size(); ++from) {
    for (size_t to = 0; to < layouts.size(); ++to) {
      const std::vector<Piece> stored = pieces_of(whole, layouts[from]);
      for (const Piece& wanted : pieces_of(whole, layouts[to])) {
        int64_t copied = 0;
        EXPECT_TRUE(at::equal(taken(wanted, stored, copied), wanted.values)) << from << " to " << to;
        EXPECT_EQ(copied, wanted.values.numel()) << from << " to " << to;
      }
    }
  }
}

TEST(TensorBoxes, TakeNumbersWithoutDims) {
  const at::Tensor one = at::full({1}, 3.0, at::kFloat);
  const std::vector<PieceBox> boxes = boxes_of_piece({}, 1);
  ASSERT_EQ(boxes.size(), 1u);
  const at::Tensor got = at::empty({1}, at::kFloat);
  EXPECT_TRUE(have_common(boxes[0], boxes[0]));
  EXPECT_EQ(copy_common(boxes[0], one, boxes[0], got), 1);
  EXPECT_TRUE(at::equal(got, one));
}

TEST(TensorBoxes, ReadNothingElseOfAFile) {
  const ScratchFolder folder;
  const at::Tensor whole = at::arange(24, at::kFloat).view({4, 6});
  write_checkpoint(folder / "step_1", {}, {{.name = "model", .tensors = {{"w", whole}}}});
  const Checkpoint checkpoint(folder / "step_1");
  const PiecePlace place{.whole_shape = {4, 6}, .layout = {.order = {0, 1}, .dim = 1, .ranks = 2}, .part = 1, .begin = 3};
  EXPECT_TRUE(at::equal(checkpoint.read_piece("w", place, 6, at::kFloat),
                        parallel::shard_of(whole, {1, 1}, 1, 2).view({-1}).narrow(0, 3, 6)));
  EXPECT_EQ(checkpoint.bytes_read(), 6 * sizeof(float));
}

}  // namespace
}  // namespace welkin::train
