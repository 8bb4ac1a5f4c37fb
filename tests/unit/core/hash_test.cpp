// SPDX-License-Identifier: Apache-2.0
#include "core/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/philox.h"

namespace welkin {
namespace {

TEST(Hash, FnvReproducesTheKnownAnswers) {
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(fnv1a64("a"), 0xaf63dc4c8601ec8cull);
  EXPECT_EQ(fnv1a64("dev/unet_full:conv_down1.0.weight"), 0xca4d55702aa68821ull);
}

// RFC 3720, appendix B.4, and the check value of the CRC catalogue.
TEST(Hash, Crc32cReproducesTheKnownAnswers) {
  EXPECT_EQ(crc32c(as_byte_span(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(as_byte_span(std::string(32, '\xff'))), 0x62a8ab43u);
  EXPECT_EQ(crc32c(as_byte_span("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(as_byte_span("56789"), crc32c(as_byte_span("1234"))), 0xe3069283u);
  EXPECT_EQ(mask_crc32c(0), 0xa282ead8u);
}

TEST(Hash, XxHashReproducesTheKnownAnswers) {
  EXPECT_EQ(xxh64({}), 0xef46db3751d8e999ull);
  EXPECT_EQ(xxh3_64({}), 0x2d06800538d394c2ull);
}

TEST(Hash, PiecesGiveTheHashOfTheWhole) {
  std::string bytes;
  for (uint64_t i = 0; i < 3000; ++i) bytes.push_back(static_cast<char>(philox(1, 0, i)[0]));
  Xxh3 hash;
  for (size_t at = 0; at < bytes.size(); at += 37) hash.update(as_byte_span(std::string_view(bytes).substr(at, 37)));
  EXPECT_EQ(hash.digest(), xxh3_64(as_byte_span(bytes)));
}

// Of bytes 31 i mod 251, by XXH3 of xxHash 0.8.1 with SSE2: in one stripe, in blocks, and in many.
TEST(Hash, LongInputsHaveTheSameHashOnEveryProcessor) {
  std::string bytes;
  for (uint64_t i = 0; i < 1'000'003; ++i) bytes.push_back(static_cast<char>(31 * i % 251));
  const std::array<std::pair<size_t, uint64_t>, 4> expected{{{64, 0x5a3c985ddf6e1a7cull},
                                                             {300, 0x253656b9aabf8eadull},
                                                             {5000, 0xa092d73116291201ull},
                                                             {1'000'003, 0xefb0a8d4669fd9fbull}}};
  for (const auto& [count, hash] : expected) {
    const auto begin = as_byte_span(std::string_view(bytes).substr(0, count));
    EXPECT_EQ(xxh3_64(begin), hash) << count;
    Xxh3 pieces;
    for (size_t at = 0; at < count; at += 777) pieces.update(begin.subspan(at, std::min<size_t>(777, count - at)));
    EXPECT_EQ(pieces.digest(), hash) << count;
  }
}

TEST(Hash, HexDigitsAreSixteen) {
  EXPECT_EQ(hex_digits(0), "0000000000000000");
  EXPECT_EQ(hex_digits(0xaf63dc4c8601ec8cull), "af63dc4c8601ec8c");
}

}  // namespace
}  // namespace welkin
