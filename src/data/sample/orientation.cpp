// SPDX-License-Identifier: Apache-2.0
#include "data/sample/orientation.h"

#include "core/error.h"

namespace welkin::data {
namespace {

constexpr std::array<std::array<int, 3>, 6> kAxisOrders{{{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}}};

constexpr int parity(const std::array<int, 3>& axis) {
  const int inversions = (axis[0] > axis[1]) + (axis[0] > axis[2]) + (axis[1] > axis[2]);
  return inversions % 2 == 0 ? 1 : -1;
}

constexpr int determinant_of(const Orientation& o) {
  const int flips = o.flip[0] + o.flip[1] + o.flip[2];
  return parity(o.axis) * (flips % 2 == 0 ? 1 : -1);
}

constexpr std::array<Orientation, kNumOrientations> make_table() {
  std::array<Orientation, kNumOrientations> table{};
  size_t next = 0;
  for (const int wanted : {1, -1}) {
    for (const auto& axis : kAxisOrders) {
      for (int flips = 0; flips < 8; ++flips) {
        const Orientation o{axis, {(flips & 4) != 0, (flips & 2) != 0, (flips & 1) != 0}};
        if (determinant_of(o) == wanted) table[next++] = o;
      }
    }
  }
  return table;
}

constexpr auto kOrientationTable = make_table();
static_assert(kOrientationTable[0] == Orientation{});

// SC22's maps 1..24 (spec: tutorials' U-Net, section 3), as transposition and axes reversed afterwards.
constexpr std::array<Orientation, 24> kTutorialMaps{
    {{{0, 1, 2}, {true, true, false}},  {{0, 1, 2}, {true, false, true}},  {{0, 1, 2}, {false, true, true}},
     {{1, 0, 2}, {true, false, false}}, {{1, 0, 2}, {true, false, true}},  {{1, 0, 2}, {false, true, false}},
     {{1, 0, 2}, {false, true, true}},  {{2, 1, 0}, {true, false, false}}, {{2, 1, 0}, {true, true, false}},
     {{2, 1, 0}, {false, false, true}}, {{2, 1, 0}, {false, true, true}},  {{0, 2, 1}, {false, true, false}},
     {{0, 2, 1}, {true, true, false}},  {{0, 2, 1}, {false, false, true}}, {{0, 2, 1}, {true, false, true}},
     {{1, 2, 0}, {true, true, false}},  {{1, 2, 0}, {false, true, true}},  {{1, 2, 0}, {true, false, true}},
     {{1, 2, 0}, {true, true, true}},   {{2, 0, 1}, {true, true, false}},  {{2, 0, 1}, {true, false, true}},
     {{2, 0, 1}, {false, true, true}},  {{2, 0, 1}, {true, true, true}},   {{0, 1, 2}, {false, false, false}}}};

constexpr int32_t index_of(const Orientation& wanted) {
  for (int32_t i = 0; i < kNumOrientations; ++i) {
    if (kOrientationTable[static_cast<size_t>(i)] == wanted) return i;
  }
  return -1;
}

constexpr auto make_counting() {
  std::array<int32_t, kNumOrientations> indices{};
  for (int32_t i = 0; i < kNumOrientations; ++i) indices[static_cast<size_t>(i)] = i;
  return indices;
}

constexpr auto make_tutorial_indices() {
  std::array<int32_t, 24> indices{};
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = index_of(kTutorialMaps[i]);
  return indices;
}

// Axes 1 and 2 reversed or not: two rotations and two reflections.
constexpr std::array<int32_t, 4> kFlipIndices{index_of({}), index_of({{0, 1, 2}, {false, true, false}}),
                                              index_of({{0, 1, 2}, {false, false, true}}),
                                              index_of({{0, 1, 2}, {false, true, true}})};

constexpr auto kCounting = make_counting();
constexpr auto kTutorialIndices = make_tutorial_indices();

}  // namespace

int determinant(const Orientation& orientation) { return determinant_of(orientation); }

const Orientation& orientation(int32_t index) {
  WELKIN_CHECK(index >= 0 && index < kNumOrientations, "no such orientation");
  return kOrientationTable[static_cast<size_t>(index)];
}

std::span<const int32_t> orientations_of(Augmentation augmentation) {
  const std::span<const int32_t> all(kCounting);
  switch (augmentation) {
    case Augmentation::None:
      return all.first(1);
    case Augmentation::Flips:
      return kFlipIndices;
    case Augmentation::Rotations:
      return all.first(24);
    case Augmentation::Octahedral:
      return all;
    case Augmentation::Tutorial:
      return kTutorialIndices;
  }
  return all.first(1);
}

int32_t tutorial_orientation(int32_t number) {
  WELKIN_CHECK(number >= 1 && number <= 24, "the tutorials' maps are numbered 1 to 24");
  return kTutorialIndices[static_cast<size_t>(number - 1)];
}

}  // namespace welkin::data
