// SPDX-License-Identifier: Apache-2.0
// A YAML file as a tree of nodes with marks. Nodes live in one array and refer to each other by index: an alias is the same index
// twice, so a file is never expanded, and neither reading nor destroying one recurses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::config {

// Place in the file, both counted from 1; line 0 = no place (a value from the command line).
struct YamlMark {
  int64_t line = 0;
  int64_t column = 0;
};

enum class YamlKind { Null, Bool, Int, Float, String, Sequence, Mapping };

using YamlId = uint32_t;

struct YamlEntry {
  std::string key;
  YamlMark mark;  // of the key, where it was written: for an inherited entry in the mapping that it comes from
  YamlId value = 0;
  int64_t distance = 0;  // merge keys between the mapping that wrote the entry and this one; 0 = own
};

struct YamlNode {
  YamlKind kind = YamlKind::Null;
  YamlMark mark;
  std::string text;                // a scalar as written, without quotes
  bool boolean = false;            // Bool
  int64_t integer = 0;             // Int
  double number = 0;               // Int and Float
  std::vector<YamlId> items;       // Sequence
  std::vector<YamlEntry> entries;  // Mapping: own entries in file order, then the inherited ones (`<<`) in their mapping's order
};

struct YamlDocument {
  std::string name;  // for messages: the file
  std::vector<YamlNode> nodes;
  YamlId root = 0;

  const YamlNode& at(YamlId id) const { return nodes.at(id); }
  const YamlNode& top() const { return nodes.at(root); }
};

// The entry of a mapping with this key, null when absent.
const YamlEntry* find_entry(const YamlNode& mapping, std::string_view key);

// A kind's name in messages: "a mapping".
std::string_view kind_name(YamlKind kind);

struct YamlLimits {
  uint64_t bytes = uint64_t{1} << 20;
  uint64_t depth = 32;       // nested collections
  uint64_t nodes = 100'000;  // after every alias and merge key is expanded
};

// One document whose root is a mapping. Throws ConfigError, with the line, for anything else: syntax, several documents,
// duplicate keys, keys that are not scalars, unknown aliases and tags, a file beyond the limits. Scalars are typed by
// yaml_scalar.h. Merge keys take an alias, a mapping or a sequence of these; own keys override inherited ones, earlier mappings
// of a sequence later ones.
YamlDocument parse_yaml(std::string_view text, const std::string& name, const YamlLimits& limits = {});

// One value in flow style, for `--set key=value`: a scalar, a list or a mapping. The root may be of any kind.
YamlDocument parse_yaml_value(std::string_view text, const std::string& name);

// A document of one string, without any reading of it.
YamlDocument string_value(std::string_view text, const std::string& name);

}  // namespace welkin::config
