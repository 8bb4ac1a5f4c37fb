// SPDX-License-Identifier: Apache-2.0
#include "core/philox.h"

#include <gtest/gtest.h>

namespace welkin {
namespace {

// Known answers of the authors' library Random123, file kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, ReproducesTheKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (PhiloxBlock{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (PhiloxBlock{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull),
            (PhiloxBlock{0xd16cfe09u, 0x94fdcceb, 0x5001e420u, 0x24126ea1u}));
}

TEST(Philox, UnitFloatNeverReachesOne) {
  EXPECT_EQ(unit_float(0), 0.0f);
  EXPECT_LT(unit_float(0xffffffffu), 1.0f);
}

TEST(Philox, NormalsAreFiniteAtTheEndsOfTheRange) {
  for (const uint32_t word : {0u, 1u, 0xffffffffu}) {
    for (const double value : normal_pair(word, word)) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(Philox, BoundedStaysBelowTheBound) {
  EXPECT_EQ(bounded(0xffffffffu, 0xffffffffu, 25), 24u);
  EXPECT_EQ(bounded(0, 0, 25), 0u);
}

}  // namespace
}  // namespace welkin
