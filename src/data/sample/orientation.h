// SPDX-License-Identifier: Apache-2.0
// The symmetries of a cube as tables: 24 rotations, 48 with reflections, and the 24 maps of the SC21/SC22 tutorials (16 rotations
// and 8 reflections, their numbering). Pure arithmetic on indices; the copy itself is in strided_copy.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "config/schema/choices.h"

namespace welkin::data {

// Output axis a runs along input axis `axis[a]`, backwards where `flip[a]`: numpy's in.transpose(axis), then reversed.
struct Orientation {
  std::array<int, 3> axis{0, 1, 2};
  std::array<bool, 3> flip{false, false, false};

  bool operator==(const Orientation&) const = default;
};

int determinant(const Orientation& orientation);  // +1 rotation, -1 reflection

// One table for all kinds, so that a plan's index says it all: 0 is the identity, 0..23 the rotations, 24..47 the reflections.
const Orientation& orientation(int32_t index);
inline constexpr int32_t kNumOrientations = 48;

using config::Augmentation;

// The indices into the table that an augmentation draws from, uniformly.
std::span<const int32_t> orientations_of(Augmentation augmentation);

// The tutorials' map number 1..24 as an index into the table.
int32_t tutorial_orientation(int32_t number);

// A vector field turns with the box: component a of the output is sign[a] times component `axis[a]` of the input.
inline float vector_sign(const Orientation& orientation, int component) {
  return orientation.flip[static_cast<size_t>(component)] ? -1.0f : 1.0f;
}

}  // namespace welkin::data
