// SPDX-License-Identifier: Apache-2.0
#include "data/sample/orientation.h"

#include <gmock/gmock.h>

#include <set>

#include "data_files.h"

namespace welkin::data::tests {
namespace {

std::array<int, 9> matrix_of(const Orientation& o) {  // out axis -> in axis
  std::array<int, 9> matrix{};
  for (size_t a = 0; a < 3; ++a) matrix[static_cast<size_t>(o.axis[a]) * 3 + a] = o.flip[a] ? -1 : 1;
  return matrix;
}

std::array<int, 9> product(const std::array<int, 9>& a, const std::array<int, 9>& b) {
  std::array<int, 9> c{};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      for (size_t k = 0; k < 3; ++k) c[i * 3 + j] += a[i * 3 + k] * b[k * 3 + j];
    }
  }
  return c;
}

TEST(OrientationTest, RotationsAreTheGroupOfTheCube) {
  std::set<std::array<int, 9>> rotations;
  for (const int32_t index : orientations_of(Augmentation::Rotations)) {
    EXPECT_EQ(determinant(orientation(index)), 1);
    rotations.insert(matrix_of(orientation(index)));
  }
  EXPECT_EQ(rotations.size(), 24u);
  for (const auto& a : rotations) {
    for (const auto& b : rotations) EXPECT_TRUE(rotations.contains(product(a, b))) << "not closed";
  }
}

TEST(OrientationTest, OctahedralHas48DifferentMapsHalfOfThemReflections) {
  std::set<std::array<int, 9>> maps;
  int reflections = 0;
  for (const int32_t index : orientations_of(Augmentation::Octahedral)) {
    maps.insert(matrix_of(orientation(index)));
    reflections += determinant(orientation(index)) == -1;
  }
  EXPECT_EQ(maps.size(), 48u);
  EXPECT_EQ(reflections, 24);
}

TEST(OrientationTest, NoneIsTheIdentity) {
  ASSERT_EQ(orientations_of(Augmentation::None).size(), 1u);
  EXPECT_EQ(orientation(orientations_of(Augmentation::None)[0]), Orientation{});
}

TEST(OrientationTest, TutorialTableEqualsTheGolden) {
  WELKIN_NEED_GOLDEN("nbody_crops");
  const auto golden = read_json(golden_folder("nbody_crops") / "rotations.json");
  int reflections = 0;
  for (const auto& row : golden["table"]) {
    const int32_t number = row["index"];
    const Orientation& o = orientation(tutorial_orientation(number));
    for (size_t a = 0; a < 3; ++a) {
      EXPECT_EQ(o.axis[a], row["transpose"][a].get<int>()) << "map " << number;
      EXPECT_EQ(o.flip[a], row["flip_after_transpose"][a].get<bool>()) << "map " << number;
    }
    EXPECT_EQ(determinant(o), row["determinant"].get<int>()) << "map " << number;
    reflections += determinant(o) == -1;
  }
  EXPECT_EQ(golden["table"].size(), 24u);
  EXPECT_EQ(reflections, 8);
}

}  // namespace
}  // namespace welkin::data::tests
