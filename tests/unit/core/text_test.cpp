// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <gmock/gmock.h>

namespace welkin {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Nearest, SwappedNeighboursAreOneEdit) {
  EXPECT_THAT(nearest("trian", {"evaluate", "train", "predict"}), ElementsAre("train"));
  EXPECT_THAT(nearest("rtain", {"train"}), ElementsAre("train"));
  EXPECT_THAT(nearest("dpeth", {"depth", "width"}), ElementsAre("depth"));
}

TEST(Nearest, OrdersByDistanceAndKeepsToAThirdOfTheLongerWord) {
  EXPECT_THAT(nearest("valid", {"invalid", "value", "valid"}), ElementsAre("valid", "invalid"));
  EXPECT_THAT(nearest("ab", {"cd", "ba"}), IsEmpty());
  EXPECT_THAT(nearest("LR", {"lr"}), ElementsAre("lr"));
}

TEST(Nearest, AWordOfAMegabyteIsNobodysTypingError) { EXPECT_THAT(nearest(std::string(1 << 20, 'a'), {"a"}), IsEmpty()); }

}  // namespace
}  // namespace welkin
