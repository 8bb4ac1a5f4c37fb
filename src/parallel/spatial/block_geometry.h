// SPDX-License-Identifier: Apache-2.0
// The input cells that a convolution needs for a range of its result, along one axis, and the division of an axis into blocks.
// Pure arithmetic, torch-free. Along each axis cell o of a convolution reads the cells o * stride - padding + k * dilation; a
// transposed one adds cell i to the cells i * stride - padding + k * dilation, k = 0 ... kernel - 1.
#pragma once

#include <algorithm>
#include <cstdint>

namespace welkin::parallel {

// Cells begin ... end - 1. Cells outside of an axis are padding, or those of its other end if it is periodic.
struct CellRange {
  int64_t begin = 0, end = 0;

  constexpr int64_t size() const { return end - begin; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool contains(const CellRange& other) const { return begin <= other.begin && other.end <= end; }
  constexpr CellRange shifted(int64_t by) const { return {begin + by, end + by}; }
  bool operator==(const CellRange&) const = default;
};

constexpr CellRange intersection(const CellRange& a, const CellRange& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

constexpr int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
constexpr int64_t ceil_quotient(int64_t a, int64_t b) { return -floor_quotient(-a, b); }

// The position of a kernel along an axis. A transposed one reaches from stride to stride: reach() >= stride.
struct AxisRule {
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  bool transposed = false;

  constexpr int64_t reach() const { return (kernel - 1) * dilation + 1; }
};

// The block at `place` of an axis that is cut as evenly as its cells allow. Some blocks are empty if there are fewer cells than
// blocks. Halving the cells halves the cuts, up to rounding, so a block's coarse cells lie where its fine ones do.
constexpr CellRange block_of(int64_t cells, int64_t blocks, int64_t place) {
  return {place * cells / blocks, (place + 1) * cells / blocks};
}

// The cells from which a non-empty range of the result is made; they may lie outside of the axis.
constexpr CellRange cells_needed(const AxisRule& rule, const CellRange& made) {
  const int64_t reach = (rule.kernel - 1) * rule.dilation;
  if (!rule.transposed) {
    return {made.begin * rule.stride - rule.padding, (made.end - 1) * rule.stride - rule.padding + reach + 1};
  }
  return {ceil_quotient(made.begin + rule.padding - reach, rule.stride),
          floor_quotient(made.end - 1 + rule.padding, rule.stride) + 1};
}

// The part of `made` that needs only `held`; may be empty.
constexpr CellRange made_from(const AxisRule& rule, const CellRange& held, const CellRange& made) {
  const int64_t reach = (rule.kernel - 1) * rule.dilation;
  CellRange whole;
  if (rule.transposed) {
    whole = {(held.begin - 1) * rule.stride + 1 - rule.padding + reach, held.end * rule.stride - rule.padding};
  } else {
    whole = {ceil_quotient(held.begin + rule.padding, rule.stride),
             floor_quotient(held.end - 1 + rule.padding - reach, rule.stride) + 1};
  }
  const CellRange part = intersection(whole, made);
  return part.empty() ? CellRange{made.begin, made.begin} : part;
}

// How a layer makes `made` from `given`: the cells that it needs, but for those outside of the box, which are zero. A
// convolution pads these. A transposed one would also make cells beside the wanted ones: its padding takes them away.
struct AxisPlacement {
  int64_t padding = 0, padding_end = 0;
  bool operator==(const AxisPlacement&) const = default;
};

constexpr AxisPlacement placement_of(const AxisRule& rule, const CellRange& given, const CellRange& made) {
  if (!rule.transposed) {
    const CellRange needed = cells_needed(rule, made);
    return {given.begin - needed.begin, needed.end - given.end};
  }
  return {made.begin - (given.begin * rule.stride - rule.padding),
          (given.end - 1) * rule.stride - rule.padding + rule.reach() - made.end};
}

}  // namespace welkin::parallel
