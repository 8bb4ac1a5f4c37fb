// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/yaml_scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace welkin::config {
namespace {

TEST(YamlScalar, NumbersWithoutPointAreFloats) {
  const std::pair<const char*, double> cases[] = {{"5E-4", 5e-4},    {"1E-3", 1e-3},       {"2.E-4", 2e-4}, {"0.", 0.0},
                                                  {"1e-3", 1e-3},    {"7.07e-4", 7.07e-4}, {".5", 0.5},     {"-2.5", -2.5},
                                                  {"+1.5e+3", 1500}, {"1e400", INFINITY},  {"1e-400", 0.0}};
  for (const auto& [text, value] : cases) {
    const YamlNode node = type_scalar(text);
    EXPECT_EQ(node.kind, YamlKind::Float) << text;
    EXPECT_EQ(node.number, value) << text;
  }
}

TEST(YamlScalar, Integers) {
  const std::pair<const char*, int64_t> cases[] = {
      {"0", 0}, {"-7", -7}, {"+3", 3}, {"010", 10}, {"0x1F", 31}, {"0o17", 15}, {"9223372036854775807", INT64_MAX}};
  for (const auto& [text, value] : cases) {
    const YamlNode node = type_scalar(text);
    EXPECT_EQ(node.kind, YamlKind::Int) << text;
    EXPECT_EQ(node.integer, value) << text;
  }
  EXPECT_EQ(type_scalar("9223372036854775808").kind, YamlKind::Float);
}

TEST(YamlScalar, WordsOfYaml11AreStrings) {
  for (const char* text : {"yes", "no", "on", "off", "y", "None", "none", "1_000", "0x", "0xg", "0x-1", "1.2.3", "e5", "1e", "+",
                           ".", "1:30", "2024-01-01"}) {
    EXPECT_EQ(type_scalar(text).kind, YamlKind::String) << text;
  }
}

TEST(YamlScalar, NullAndBooleans) {
  for (const char* text : {"", "~", "null", "Null", "NULL"}) EXPECT_EQ(type_scalar(text).kind, YamlKind::Null) << text;
  for (const char* text : {"true", "True", "TRUE"}) EXPECT_TRUE(type_scalar(text).boolean) << text;
  for (const char* text : {"false", "False", "FALSE"}) {
    EXPECT_EQ(type_scalar(text).kind, YamlKind::Bool) << text;
    EXPECT_FALSE(type_scalar(text).boolean) << text;
  }
}

TEST(YamlScalar, FloatTextIsPythonsAndReadsBack) {
  EXPECT_EQ(float_text(5e-4), "0.0005");
  EXPECT_EQ(float_text(1e-8), "1e-08");
  EXPECT_EQ(float_text(65536), "65536.0");
  EXPECT_EQ(float_text(1e16), "1e+16");
  EXPECT_EQ(float_text(0), "0.0");
  for (const double value : {0.1, 1.0 / 3, 5.66e-3, 1e300, -2e-5, std::numeric_limits<double>::denorm_min(), 123456789.125}) {
    EXPECT_EQ(type_scalar(float_text(value)).number, value);
    EXPECT_EQ(type_scalar(float_text(value)).kind, YamlKind::Float);
  }
}

TEST(YamlScalar, QuotesWhatWouldNotReadBackAsTheSameString) {
  EXPECT_EQ(quote_if_needed("vit"), "vit");
  EXPECT_EQ(quote_if_needed("/data/train.h5"), "/data/train.h5");
  EXPECT_EQ(quote_if_needed("00"), "'00'");
  EXPECT_EQ(quote_if_needed("None"), "'None'");
  EXPECT_EQ(quote_if_needed("null"), "'null'");
  EXPECT_EQ(quote_if_needed("it's"), "'it''s'");
  EXPECT_EQ(quote_if_needed("a: b"), "'a: b'");
  EXPECT_EQ(quote_if_needed("a\nb"), "\"a\\x0ab\"");
}

// YAML folds further line breaks than \n, takes a byte order mark off, and refuses control characters and what is no character.
TEST(YamlScalar, EveryTextReadsBackAsItWas) {
  for (const char* text : {"a\u0085b", "a\u0080b", "a\u009fb", "a\u2028b", "a\u2029 ", "\ufeffa", "a\ufffe", "\uffff", "\xc3\xa4",
                           "\u20ac'", "\x7f", " a ", "\U0001f30d\n"}) {
    const YamlDocument again = parse_yaml_value(quote_if_needed(text), "test");
    EXPECT_EQ(again.top().kind, YamlKind::String) << text;
    EXPECT_EQ(again.top().text, text);
  }
}

}  // namespace
}  // namespace welkin::config
