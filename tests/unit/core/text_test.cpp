// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

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

// By the whole table, of which the search leaves out most.
size_t distance_by_table(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& least = rows[i][j] = std::max(i, j);
      if (i == 0 || j == 0) continue;
      least = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) least = std::min(least, rows[i - 2][j - 2] + 1);
    }
  }
  return rows.back().back();
}

TEST(Nearest, FindsAllThatAreNear) {
  std::mt19937 random(7);
  const auto word = [&random] {
    std::string text(random() % 10, 'a');
    for (char& c : text) c = "abcz_"[random() % 5];
    return text;
  };
  for (int i = 0; i < 5000; ++i) {
    const std::string a = word(), b = word();
    const bool is_near = distance_by_table(a, b) * 3 <= std::max(a.size(), b.size());
    EXPECT_EQ(nearest(a, {b}).size(), is_near ? 1u : 0u) << a << ", " << b;
  }
}

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
