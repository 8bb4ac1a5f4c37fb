// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/yaml_document.h"

#include <string>

#include "core/text.h"
#include "harness.h"

namespace welkin::config {
namespace {

using ::testing::HasSubstr;

YamlDocument parsed(const std::string& text) { return parse_yaml(text, "f.yaml"); }

std::string parse_error(const std::string& text, const YamlLimits& limits = {}) {
  return test::config_error([&] { parse_yaml(text, "f.yaml", limits); });
}

const YamlNode& value(const YamlDocument& document, const char* mapping, const char* key) {
  return document.at(find_entry(document.at(find_entry(document.top(), mapping)->value), key)->value);
}

std::vector<std::string> keys(const YamlDocument& document, const char* mapping) {
  std::vector<std::string> names;
  for (const auto& entry : document.at(find_entry(document.top(), mapping)->value).entries) names.push_back(entry.key);
  return names;
}

TEST(YamlDocument, ReadsFlowAndBlockWithMarks) {
  const auto document = parsed("a: &x {p: 1, q: 'yes'}  # why\nb:\n  - 2.E-4\n  - [True, null]\n");
  EXPECT_EQ(value(document, "a", "q").kind, YamlKind::String);
  EXPECT_EQ(find_entry(document.at(find_entry(document.top(), "a")->value), "q")->mark.line, 1);
  EXPECT_EQ(find_entry(document.top(), "b")->mark.line, 2);
  const YamlNode& list = document.at(find_entry(document.top(), "b")->value);
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(document.at(list.items[0]).number, 2e-4);
  EXPECT_EQ(document.at(document.at(list.items[1]).items[1]).kind, YamlKind::Null);
}

TEST(YamlDocument, OwnKeysFirstThenInheritedOnesMinusOverridden) {
  const auto document = parsed("base: &b {w: 1, x: 2, y: 3}\nmid: &m\n  z: 9\n  <<: *b\n  x: 5\nleaf:\n  <<: *m\n  y: 7\n");
  EXPECT_EQ(keys(document, "mid"), (std::vector<std::string>{"z", "x", "w", "y"}));
  EXPECT_EQ(keys(document, "leaf"), (std::vector<std::string>{"y", "z", "x", "w"}));
  EXPECT_EQ(value(document, "leaf", "x").integer, 5);
  EXPECT_EQ(value(document, "leaf", "w").integer, 1);
  EXPECT_EQ(find_entry(document.at(find_entry(document.top(), "leaf")->value), "w")->distance, 2);
}

TEST(YamlDocument, MergesListsEarlierFirst) {
  const auto document = parsed("a: &a {p: 1}\nb: &b {p: 2, q: 3}\nc:\n  <<: [*a, *b, {r: 4}]\n");
  EXPECT_EQ(value(document, "c", "p").integer, 1);
  EXPECT_EQ(value(document, "c", "q").integer, 3);
  EXPECT_EQ(value(document, "c", "r").integer, 4);
}

TEST(YamlDocument, AnchorNamesAreFreeAndMayBeReused) {
  const auto document = parsed("short: &short_ls {p: 1}\nx: {<<: *short_ls}\nother: &short_ls {p: 2}\ny: {<<: *short_ls}\n");
  EXPECT_EQ(value(document, "x", "p").integer, 1);
  EXPECT_EQ(value(document, "y", "p").integer, 2);
}

TEST(YamlDocument, ReadsByteOrderMarksCrLfAndTags) {
  EXPECT_EQ(parsed("\xEF\xBB\xBF"
                   "a: {p: 1}\r\n")
                .top()
                .entries.size(),
            1u);
  EXPECT_EQ(value(parsed("a: {p: !!str 5}\n"), "a", "p").kind, YamlKind::String);
  EXPECT_EQ(value(parsed("a: {p: !!float 5}\n"), "a", "p").number, 5.0);
}

TEST(YamlDocument, RefusesWithFileAndLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"a:\n  p: 1\n  q: 2\n  p: 3\n",
       "[config] f.yaml:4: the key occurs twice in one mapping: key=p, first line=2. Remove one of them"},
      {"a: 1\na: 2\n", "f.yaml:2: the key occurs twice in one mapping: key=a, first line=1"},
      {"a: &a {}\nb:\n  <<: *a\n  <<: *a\n",
       "f.yaml:4: the key occurs twice in one mapping: key=<<, first line=3. Merge several mappings by one list: <<: [*one, "
       "*two]"},
      {"a: {}\n---\nb: {}\n", "f.yaml:2: a second document begins. Keep one document per file"},
      {"", "f.yaml: the file is empty. It must hold presets"},
      {"# nothing\n", "f.yaml: the file is empty"},
      {"- a\n- b\n", "f.yaml:1: the file is a list, not a mapping"},
      {"word\n", "f.yaml:1: the file is a string, not a mapping"},
      {"base: &base {}\nb: {<<: *bse}\n", "f.yaml:2: the alias names no anchor above it: alias=*bse. Nearest: *base."},
      {"a: &a\n  p: *a\n", "f.yaml:2: the alias lies inside its own anchor: alias=*a. A value cannot contain itself."},
      {"a: {<<: 3}\n", "f.yaml:1: the merge key takes mappings: it is given an integer. Write <<: *anchor or <<: [*one, *two]."},
      {"{[1]: 2}\n", "f.yaml:1: a key is a list. Keys are plain words."},
      {"a: &a 1\n*a : 2\n", "f.yaml:2: a key is an alias. Write the key itself."},
      {"a: !!int x\n", "f.yaml:1: the tag does not fit the value: tag=tag:yaml.org,2002:int, value=x. Remove the tag."},
      {"a: !python/object {}\n", "f.yaml:1: unknown tag: !python/object"},
      {"a:\n\tb: 1\n", "f.yaml:2:1: not valid YAML: found character that cannot start any token"},
      {"a: {b: 1\n", "not valid YAML: did not find expected ',' or '}'"},
      {"a: '\xff\xfe'\n", "not valid YAML: "},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(parse_error(text), HasSubstr(message)) << text;
}

TEST(YamlDocument, RefusesBombs) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = cat("*a", i - 1);
    laughs += cat("a", i, ": &a", i, " [");
    for (int k = 0; k < 10; ++k) laughs += (k == 0 ? "" : ", ") + before;
    laughs += "]\n";
  }
  EXPECT_THAT(parse_error(laughs),
              HasSubstr("f.yaml:5: the file is too large once its aliases are expanded: more than 100000 nodes"));

  std::string chain = "p0: &p0 {k0: 0}\n";
  for (int i = 1; i < 2000; ++i) {
    chain += cat("p", i, ": &p", i, " {<<: *p", i - 1, ", k", i, ": 0}\n");
  }
  EXPECT_THAT(parse_error(chain), HasSubstr("too large once its aliases are expanded"));

  EXPECT_THAT(parse_error(cat("a: ", std::string(40, '['))),
              HasSubstr("f.yaml:1: nested too deeply: limit=32. Configurations are flat."));
  EXPECT_THAT(parse_error(std::string(200, '#'), {.bytes = 100}),
              HasSubstr("f.yaml: the file is too large: bytes=200, limit=100"));
}

TEST(YamlDocument, LimitsLeaveRoomForRealFiles) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += cat("p", i, ": {a: 1, b: [1, 2], c: x}\n");
  EXPECT_EQ(parsed(text).top().entries.size(), 1000u);
}

}  // namespace
}  // namespace welkin::config
