// SPDX-License-Identifier: Apache-2.0
#include "parallel/store/store_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace welkin::parallel {
namespace {

using testing::ElementsAre;

std::string text_of(const std::optional<StoreMessage>& reply) { return reply && !reply->texts.empty() ? reply->texts[0] : "-"; }

TEST(StoreTable, SetsGetsAndDeletes) {
  StoreTable table;
  EXPECT_FALSE(table.answer({.kind = StoreCall::Get, .texts = {"a"}}));
  EXPECT_EQ(table.answer({.kind = StoreCall::Set, .texts = {"a", "one"}})->kind, StoreCall::Done);
  EXPECT_EQ(text_of(table.answer({.kind = StoreCall::Get, .texts = {"a"}})), "one");
  EXPECT_EQ(table.answer({.kind = StoreCall::Count})->number, 1);
  EXPECT_EQ(table.answer({.kind = StoreCall::Delete, .texts = {"a"}})->number, 1);
  EXPECT_EQ(table.answer({.kind = StoreCall::Delete, .texts = {"a"}})->number, 0);
}

TEST(StoreTable, WaitsForAllKeys) {
  StoreTable table;
  table.answer({.kind = StoreCall::Set, .texts = {"a", ""}});
  EXPECT_EQ(table.answer({.kind = StoreCall::Check, .texts = {"a", "b"}})->number, 0);
  EXPECT_FALSE(table.answer({.kind = StoreCall::Wait, .texts = {"a", "b"}}));
  table.answer({.kind = StoreCall::Set, .texts = {"b", ""}});
  EXPECT_EQ(table.answer({.kind = StoreCall::Check, .texts = {"a", "b"}})->number, 1);
  EXPECT_TRUE(table.answer({.kind = StoreCall::Wait, .texts = {"a", "b"}}));
}

// As TCPStore of torch 2.11 answers.
TEST(StoreTable, ComparesAndSetsAsTcpStore) {
  StoreTable table;
  const auto swap = [&](const char* expected, const char* value) {
    return text_of(table.answer({.kind = StoreCall::CompareSet, .texts = {"a", expected, value}}));
  };
  EXPECT_EQ(swap("old", "new"), "old");
  EXPECT_FALSE(table.answer({.kind = StoreCall::Get, .texts = {"a"}}));
  EXPECT_EQ(swap("", "first"), "first");
  EXPECT_EQ(swap("", "second"), "first");
  EXPECT_EQ(swap("first", "second"), "second");
}

TEST(StoreTable, AddsNumbers) {
  StoreTable table;
  EXPECT_EQ(table.answer({.kind = StoreCall::Add, .number = 3, .texts = {"n"}})->number, 3);
  EXPECT_EQ(table.answer({.kind = StoreCall::Add, .number = -5, .texts = {"n"}})->number, -2);
  EXPECT_EQ(text_of(table.answer({.kind = StoreCall::Get, .texts = {"n"}})), "-2");
  EXPECT_EQ(table.answer({.kind = StoreCall::Add, .number = std::numeric_limits<int64_t>::min(), .texts = {"n"}})->kind,
            StoreCall::Refused);
  table.answer({.kind = StoreCall::Set, .texts = {"t", "text"}});
  EXPECT_EQ(table.answer({.kind = StoreCall::Add, .number = 1, .texts = {"t"}})->kind, StoreCall::Refused);
}

TEST(StoreTable, RefusesWhatIsNoRequest) {
  StoreTable table;
  EXPECT_EQ(table.answer({.kind = StoreCall::Set, .texts = {"a"}})->kind, StoreCall::Refused);
  EXPECT_EQ(table.answer({.kind = StoreCall::Get})->kind, StoreCall::Refused);
  EXPECT_EQ(table.answer({.kind = StoreCall::Done})->kind, StoreCall::Refused);
}

TEST(StoreMessage, IsReadAsItWasWritten) {
  const auto message = decode(encode({.kind = StoreCall::CompareSet, .number = -7, .texts = {"", std::string("a\0b", 3)}}));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->kind, StoreCall::CompareSet);
  EXPECT_EQ(message->number, -7);
  EXPECT_THAT(message->texts, ElementsAre("", std::string("a\0b", 3)));
  EXPECT_EQ(frame_length(framed(std::string(300, 'x'))), 300u);
}

TEST(StoreMessage, IsNotReadBeyondItsEnd) {
  const std::string bytes = encode({.kind = StoreCall::Set, .texts = {"key", "value"}});
  for (size_t length = 0; length < bytes.size(); ++length) {
    const bool is_whole = length == 9 || length == 9 + 4 + 3;  // no text, or one
    EXPECT_EQ(decode(bytes.substr(0, length)).has_value(), is_whole) << length;
  }
  EXPECT_FALSE(decode(bytes + "x"));
  EXPECT_FALSE(decode(std::string(1, '\x7f') + bytes.substr(1)));
  EXPECT_FALSE(decode(bytes.substr(0, 9) + "\xff\xff\xff\xff"));
}

}  // namespace
}  // namespace welkin::parallel
