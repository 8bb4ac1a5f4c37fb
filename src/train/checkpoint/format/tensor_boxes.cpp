// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/format/tensor_boxes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>

#include "train/checkpoint/format/tensor_pieces.h"

namespace welkin::train {
namespace {

// A part's extents and strides in the order of its memory.
struct MemoryOrder {
  std::vector<int64_t> extents, strides;
};

MemoryOrder memory_order(const std::vector<int64_t>& part_shape, const std::vector<int64_t>& order) {
  MemoryOrder memory;
  for (const int64_t dim : order) memory.extents.push_back(part_shape[static_cast<size_t>(dim)]);
  memory.strides.assign(order.size(), 1);
  for (size_t dim = order.size(); dim-- > 1;) memory.strides[dim - 1] = memory.strides[dim] * memory.extents[dim];
  return memory;
}

// Adds the boxes of `count` elements from `begin` on: the rest of a row, whole rows, and the beginning of another, in the order
// of memory. `dim` is the outermost dim that changes; `box` has the dims outside of it.
void add_boxes(std::vector<PieceBox>& boxes, const MemoryOrder& memory, size_t dim, PieceBox box, int64_t begin, int64_t count) {
  if (count == 0) return;
  if (dim == memory.extents.size()) {
    boxes.push_back(std::move(box));
    return;
  }
  const int64_t row = memory.strides[dim];
  const auto add_part = [&](int64_t from, int64_t length) {
    PieceBox inner = box;
    inner.begin[dim] = from / row;
    inner.extent[dim] = 1;
    add_boxes(boxes, memory, dim + 1, std::move(inner), from % row, length);
    box.offset += length;
    count -= length;
  };
  int64_t next = begin;
  if (next % row != 0) {
    const int64_t length = std::min(count, row - next % row);
    add_part(next, length);
    next += length;
  }
  if (const int64_t rows = count / row; rows > 0) {
    PieceBox whole = box;
    whole.begin[dim] = next / row;
    whole.extent[dim] = rows;
    boxes.push_back(std::move(whole));
    box.offset += rows * row;
    next += rows * row;
    count -= rows * row;
  }
  if (count > 0) add_part(next, count);
}

PieceBox in_tensor_order(const PieceBox& box, const std::vector<int64_t>& order) {
  PieceBox ordered = box;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto dim = static_cast<size_t>(order[i]);
    ordered.begin[dim] = box.begin[i];
    ordered.extent[dim] = box.extent[i];
    ordered.strides[dim] = box.strides[i];
  }
  return ordered;
}

// Places the box of a part in the whole tensor, block by block.
void add_places(std::vector<PieceBox>& boxes, const PieceBox& of_part, const PiecePlace& place) {
  const PieceLayout& layout = place.layout;
  if (layout.ranks == 1) {
    boxes.push_back(of_part);
    return;
  }
  const auto dim = static_cast<size_t>(layout.dim);
  const int64_t share = place.whole_shape[dim] / (layout.ranks * layout.blocks);
  const int64_t end = of_part.begin[dim] + of_part.extent[dim];
  for (int64_t from = of_part.begin[dim]; from < end;) {
    const int64_t block = from / share, to = std::min(end, (block + 1) * share);
    PieceBox box = of_part;
    box.begin[dim] = (block * layout.ranks + place.part) * share + from % share;
    box.extent[dim] = to - from;
    box.offset += (from - of_part.begin[dim]) * of_part.strides[dim];
    boxes.push_back(std::move(box));
    from = to;
  }
}

}  // namespace

std::vector<PieceBox> boxes_of_piece(const PiecePlace& place, int64_t count) {
  const MemoryOrder memory = memory_order(shape_of_part(place.whole_shape, place.layout), place.layout.order);
  const PieceBox all{
      .begin = std::vector<int64_t>(memory.extents.size(), 0), .extent = memory.extents, .offset = 0, .strides = memory.strides};
  std::vector<PieceBox> in_memory, boxes;
  add_boxes(in_memory, memory, 0, all, place.begin, count);
  for (const PieceBox& box : in_memory) add_places(boxes, in_tensor_order(box, place.layout.order), place);
  return boxes;
}

bool have_common(const PieceBox& a, const PieceBox& b) {
  for (size_t dim = 0; dim < a.begin.size(); ++dim) {
    if (a.begin[dim] + a.extent[dim] <= b.begin[dim] || b.begin[dim] + b.extent[dim] <= a.begin[dim]) return false;
  }
  return true;
}

int64_t copy_common(const PieceBox& from, const at::Tensor& source, const PieceBox& to, const at::Tensor& target) {
  std::vector<int64_t> extent;
  int64_t first = source.storage_offset() + from.offset, first_of_target = target.storage_offset() + to.offset;
  for (size_t dim = 0; dim < from.begin.size(); ++dim) {
    const int64_t begin = std::max(from.begin[dim], to.begin[dim]);
    const int64_t end = std::min(from.begin[dim] + from.extent[dim], to.begin[dim] + to.extent[dim]);
    extent.push_back(end - begin);
    first += (begin - from.begin[dim]) * from.strides[dim];
    first_of_target += (begin - to.begin[dim]) * to.strides[dim];
  }
  const at::Tensor place = at::as_strided(target, extent, to.strides, first_of_target);
  place.copy_(at::as_strided(source, extent, from.strides, first));
  return place.numel();
}

at::Tensor piece_of_row_major(const at::Tensor& whole, const PiecePlace& place, int64_t count) {
  PiecePlace all{.whole_shape = place.whole_shape, .layout = {.order = std::vector<int64_t>(place.whole_shape.size())}};
  std::iota(all.layout.order.begin(), all.layout.order.end(), 0);
  at::Tensor values = at::empty({count}, whole.options().requires_grad(false));
  for (const PieceBox& from : boxes_of_piece(all, whole.numel())) {
    for (const PieceBox& to : boxes_of_piece(place, count)) {
      if (have_common(from, to)) copy_common(from, whole, to, values);
    }
  }
  return values;
}

}  // namespace welkin::train
