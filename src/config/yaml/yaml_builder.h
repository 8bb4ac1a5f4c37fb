// SPDX-License-Identifier: Apache-2.0
// Builds a YamlDocument from a parser's events: anchors, merge keys, duplicate keys and limits. Knows no parser library.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/yaml/yaml_document.h"

namespace welkin::config {

struct YamlScalar {
  std::string_view text, anchor, tag;  // anchor and tag empty when absent
  bool plain = true;                   // not quoted, not a block scalar
  YamlMark mark;
};

// Every function throws ConfigError with file and line when the event is not allowed.
class YamlBuilder {
 public:
  YamlBuilder(std::string name, const YamlLimits& limits);

  void begin_document(YamlMark mark);  // a second one is an error
  void scalar(const YamlScalar& scalar);
  void alias(std::string_view anchor, YamlMark mark);
  void begin(YamlKind kind, std::string_view anchor, std::string_view tag, YamlMark mark);
  void end();

  // The document, without nodes when the stream held none.
  YamlDocument finish();

 private:
  // A collection that is not closed yet.
  struct Frame {
    YamlId id = 0;
    bool has_key = false;   // mapping: the next value belongs to key
    bool is_merge = false;  // mapping: that key is `<<`
    std::string key;
    YamlMark key_mark;
    std::unordered_map<std::string, int64_t> key_lines;  // mapping: own keys, then inherited ones too
    std::vector<YamlId> merged;                          // mapping: the mappings that `<<` names, in order
  };

  YamlId add_node(YamlNode node, std::string_view anchor);
  void accept_key(const YamlScalar& scalar);
  void attach(YamlId value, YamlMark mark);
  void attach_merge(YamlId value, YamlMark mark);
  void inherit(Frame& frame);
  void count(YamlId into, uint64_t nodes, YamlMark mark);
  [[noreturn]] void fail(YamlMark mark, std::string_view what, std::string_view remedy) const;

  YamlLimits limits_;
  YamlDocument document_;
  std::vector<Frame> open_;
  std::vector<uint64_t> expanded_nodes_;  // by node: itself and all below, every alias and merge key expanded
  std::map<std::string, YamlId, std::less<>> anchors_;
  bool has_document_ = false;
};

}  // namespace welkin::config
