// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/format/tensor_pieces.h"

#include <algorithm>
#include <tuple>

#include "core/checked.h"
#include "core/error.h"
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

void add_records(CheckpointIndex& index, const CheckpointIndex& part) {
  index.files.insert(part.files.begin(), part.files.end());
  for (const auto& [name, record] : part.tensors) {
    const auto [place, is_new] = index.tensors.emplace(name, record);
    if (is_new) continue;
    std::vector<TensorPiece>& pieces = place->second.pieces;
    pieces.insert(pieces.end(), record.pieces.begin(), record.pieces.end());
  }
}

void finish_records(CheckpointIndex& index) {
  for (auto& [name, record] : index.tensors) {
    std::ranges::sort(record.pieces, {}, [](const TensorPiece& piece) { return std::tuple(piece.part, piece.begin); });
    const std::string problem = record.pieces.empty() ? std::string() : problem_of_pieces(record);
    WELKIN_CHECK(problem.empty(), cat("each element is written once: ", name, ": ", problem));
  }
}

}  // namespace welkin::train
