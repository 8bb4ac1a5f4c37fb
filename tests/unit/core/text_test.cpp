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

TEST(Wrapped, BreaksAtBlanksAndIndentsWhatFollows) {
  EXPECT_EQ(wrapped("one two three", 80, 4), "one two three");
  EXPECT_EQ(wrapped("one two three", 11, 4), "one two\n    three");
  EXPECT_EQ(wrapped("one two three", 7, 4), "one\n    two\n    three");
}

TEST(Wrapped, AWordThatIsTooLongStaysWhole) {
  EXPECT_EQ(wrapped("incomparable", 5, 0), "incomparable");
  EXPECT_EQ(wrapped("an incomparable word", 6, 1), "an\n incomparable\n word");
}

}  // namespace
}  // namespace welkin
