// SPDX-License-Identifier: Apache-2.0
// libyaml's events, one by one, handed to a YamlBuilder. libyaml knows nothing of types or merge keys: these are ours.
#include <yaml.h>

#include <string>
#include <string_view>

#include "config/yaml/yaml_builder.h"
#include "config/yaml/yaml_document.h"
#include "config/yaml/yaml_scalar.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::config {
namespace {

YamlMark mark_of(const yaml_mark_t& mark) { return {static_cast<int64_t>(mark.line) + 1, static_cast<int64_t>(mark.column) + 1}; }

std::string_view text_of(const yaml_char_t* text) { return text == nullptr ? "" : reinterpret_cast<const char*>(text); }

class EventReader {
 public:
  EventReader(std::string_view text, const std::string& name) : name_(name) {
    WELKIN_CHECK(yaml_parser_initialize(&parser_) != 0, "libyaml has no memory");
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~EventReader() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // Valid until the next call.
  const yaml_event_t& next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) == 0) fail();
    return event_;
  }

 private:
  [[noreturn]] void fail() const {
    const YamlMark at = mark_of(parser_.problem_mark);
    std::string what =
        cat(name_, ":", at.line, ":", at.column, ": not valid YAML: ", parser_.problem ? parser_.problem : "out of memory");
    if (parser_.context != nullptr) what += cat(" ", parser_.context);
    throw ConfigError("config", what, "Correct the file; YAML indents with blanks, never with tabs");
  }

  const std::string& name_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

YamlScalar scalar_of(const yaml_event_t& event) {
  const auto& scalar = event.data.scalar;
  return {.text = std::string_view(reinterpret_cast<const char*>(scalar.value), scalar.length),
          .anchor = text_of(scalar.anchor),
          .tag = text_of(scalar.tag),
          .plain = scalar.style == YAML_PLAIN_SCALAR_STYLE,
          .mark = mark_of(event.start_mark)};
}

void feed(YamlBuilder& builder, const yaml_event_t& event) {
  const YamlMark mark = mark_of(event.start_mark);
  switch (event.type) {
    case YAML_DOCUMENT_START_EVENT:
      return builder.begin_document(mark);
    case YAML_SCALAR_EVENT:
      return builder.scalar(scalar_of(event));
    case YAML_ALIAS_EVENT:
      return builder.alias(text_of(event.data.alias.anchor), mark);
    case YAML_SEQUENCE_START_EVENT:
      return builder.begin(YamlKind::Sequence, text_of(event.data.sequence_start.anchor), text_of(event.data.sequence_start.tag),
                           mark);
    case YAML_MAPPING_START_EVENT:
      return builder.begin(YamlKind::Mapping, text_of(event.data.mapping_start.anchor), text_of(event.data.mapping_start.tag),
                           mark);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
      return builder.end();
    default:
      return;  // ends of stream and document carry nothing
  }
}

YamlDocument parse_any(std::string_view text, const std::string& name, const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    throw ConfigError("config", cat(name, ": the file is too large: bytes=", text.size(), ", limit=", limits.bytes),
                      "Configurations are short: check that this is the right file");
  }
  EventReader reader(text, name);
  YamlBuilder builder(name, limits);
  for (;;) {
    const yaml_event_t& event = reader.next();
    if (event.type == YAML_STREAM_END_EVENT) return builder.finish();
    feed(builder, event);
  }
}

}  // namespace

YamlDocument parse_yaml(std::string_view text, const std::string& name, const YamlLimits& limits) {
  YamlDocument document = parse_any(text, name, limits);
  if (document.nodes.empty()) {
    throw ConfigError("config", cat(name, ": the file is empty"),
                      "It must hold presets: a mapping from names to mappings of keys");
  }
  if (document.top().kind != YamlKind::Mapping) {
    throw ConfigError(
        "config", cat(name, ":", document.top().mark.line, ": the file is ", kind_name(document.top().kind), ", not a mapping"),
        "It must hold presets: a mapping from names to mappings of keys");
  }
  return document;
}

YamlDocument parse_yaml_value(std::string_view text, const std::string& name) {
  YamlDocument document = parse_any(text, name, YamlLimits{.bytes = 65536, .nodes = 10000});
  return document.nodes.empty() ? string_value("", name) : document;
}

YamlDocument string_value(std::string_view text, const std::string& name) {
  YamlDocument document{.name = name, .nodes = {}, .root = 0};
  YamlNode node;
  node.kind = YamlKind::String;
  node.text = text;
  document.nodes.push_back(std::move(node));
  return document;
}

}  // namespace welkin::config
