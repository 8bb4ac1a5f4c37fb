// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/tensor_pieces.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <tuple>

#include "core/checked.h"
#include "core/text.h"

namespace welkin::train {
namespace {

constexpr int64_t kMostParts = int64_t{1} << 20, kMostElements = int64_t{1} << 50;

bool is_permutation_of_dims(std::vector<int64_t> order, size_t dims) {
  std::ranges::sort(order);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return order.size() == dims;
}

std::string problem_of_layout(const TensorRecord& record) {
  const PieceLayout& layout = record.layout;
  if (!is_permutation_of_dims(layout.order, record.shape.size())) return "order is not one of its dims";
  for (const int64_t number : {layout.ranks, layout.blocks}) {
    if (number < 1 || number > kMostParts) return cat("ranks or blocks is no such number: ", number);
  }
  if (layout.ranks == 1) return "";
  if (layout.dim < 0 || layout.dim >= static_cast<int64_t>(record.shape.size())) return cat("no such dim: ", layout.dim);
  const int64_t extent = record.shape[static_cast<size_t>(layout.dim)];
  return extent % (layout.ranks * layout.blocks) == 0 ? "" : cat("dim ", layout.dim, " does not divide: ", extent);
}

// (elements) of a part -> the part.
at::Tensor part_of_memory(const at::Tensor& memory, const std::vector<int64_t>& shape, const std::vector<int64_t>& order) {
  std::vector<int64_t> ordered, inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    ordered.push_back(shape[static_cast<size_t>(order[i])]);
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return memory.view(ordered).permute(inverse);
}

}  // namespace

std::vector<int64_t> shape_of_part(const std::vector<int64_t>& shape, const PieceLayout& layout) {
  std::vector<int64_t> part = shape;
  if (layout.ranks > 1) part[static_cast<size_t>(layout.dim)] /= layout.ranks;
  return part;
}

std::string problem_of_pieces(const TensorRecord& record) {
  if (std::string problem = problem_of_layout(record); !problem.empty()) return problem;
  bool overflows = false;
  struct TooLarge {};
  int64_t elements = 0;
  try {
    elements = checked_product(shape_of_part(record.shape, record.layout), [] { throw TooLarge(); });
  } catch (const TooLarge&) {
    overflows = true;
  }
  if (overflows || elements > kMostElements) return "its shape is too large, or negative";
  std::vector<TensorPiece> pieces = record.pieces;
  std::ranges::sort(pieces, {}, [](const TensorPiece& piece) { return std::tuple(piece.part, piece.begin); });
  int64_t part = 0, filled = 0;
  for (const TensorPiece& piece : pieces) {
    if (filled == elements && piece.part == part + 1) {
      ++part;
      filled = 0;
    }
    if (piece.part != part || piece.begin != filled)
      return cat("elements are missing or there twice: part ", part, " from ", filled);
    if (piece.count < 1 || piece.count > elements - filled)
      return cat("a piece is too long: part ", part, ", count ", piece.count);
    filled += piece.count;
  }
  const bool is_whole = part == record.layout.ranks - 1 && filled == elements;
  return is_whole ? "" : cat("elements are missing: part ", part, " from ", filled);
}

// One part after the other, so that no more than the tensor and a part of it are there.
at::Tensor whole_of_pieces(const TensorRecord& record, at::ScalarType type,
                           const std::function<void(const TensorPiece&, const at::Tensor&)>& fill) {
  const PieceLayout& layout = record.layout;
  const std::vector<int64_t> shape = shape_of_part(record.shape, layout);
  const auto part_of = [&](int64_t number) {
    const at::Tensor memory = at::empty({c10::multiply_integers(shape)}, at::TensorOptions(type));
    for (const TensorPiece& piece : record.pieces) {
      if (piece.part == number) fill(piece, memory.narrow(0, piece.begin, piece.count));
    }
    return part_of_memory(memory, shape, layout.order);
  };
  if (layout.ranks == 1) return part_of(0).contiguous();
  at::Tensor whole = at::empty(record.shape, at::TensorOptions(type));
  const int64_t share = shape[static_cast<size_t>(layout.dim)] / layout.blocks;
  for (int64_t number = 0; number < layout.ranks; ++number) {
    const at::Tensor part = part_of(number);
    for (int64_t block = 0; block < layout.blocks; ++block) {
      const at::Tensor place = whole.narrow(layout.dim, (block * layout.ranks + number) * share, share);
      place.copy_(part.narrow(layout.dim, block * share, share));
    }
  }
  return whole;
}

}  // namespace welkin::train
