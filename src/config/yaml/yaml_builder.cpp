// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/yaml_builder.h"

#include <algorithm>
#include <utility>

#include "config/yaml/yaml_scalar.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::config {
namespace {

constexpr std::string_view kMergeKey = "<<";
constexpr std::string_view kStringTag = "tag:yaml.org,2002:str";
constexpr std::string_view kNonSpecificTag = "!";

// The tags of the core schema for plain scalars: they may confirm a type, not change one, except for a string.
bool tag_agrees(std::string_view tag, YamlKind kind) {
  if (tag == "tag:yaml.org,2002:int") return kind == YamlKind::Int;
  if (tag == "tag:yaml.org,2002:float") return kind == YamlKind::Int || kind == YamlKind::Float;
  if (tag == "tag:yaml.org,2002:bool") return kind == YamlKind::Bool;
  if (tag == "tag:yaml.org,2002:null") return kind == YamlKind::Null;
  if (tag == "tag:yaml.org,2002:map") return kind == YamlKind::Mapping;
  if (tag == "tag:yaml.org,2002:seq") return kind == YamlKind::Sequence;
  return tag.empty();
}

YamlNode typed(const YamlScalar& scalar) {
  const bool is_string = !scalar.plain || scalar.tag == kStringTag || scalar.tag == kNonSpecificTag;
  if (!is_string) return type_scalar(scalar.text);
  YamlNode node;
  node.kind = YamlKind::String;
  node.text = scalar.text;
  return node;
}

}  // namespace

std::string_view kind_name(YamlKind kind) {
  switch (kind) {
    case YamlKind::Null:
      return "null";
    case YamlKind::Bool:
      return "a boolean";
    case YamlKind::Int:
      return "an integer";
    case YamlKind::Float:
      return "a number";
    case YamlKind::String:
      return "a string";
    case YamlKind::Sequence:
      return "a list";
    case YamlKind::Mapping:
      break;
  }
  return "a mapping";
}

const YamlEntry* find_entry(const YamlNode& mapping, std::string_view key) {
  const auto found =
      std::find_if(mapping.entries.begin(), mapping.entries.end(), [key](const auto& entry) { return entry.key == key; });
  return found == mapping.entries.end() ? nullptr : &*found;
}

YamlBuilder::YamlBuilder(std::string name, const YamlLimits& limits) : limits_(limits) { document_.name = std::move(name); }

void YamlBuilder::fail(YamlMark mark, std::string_view what, std::string_view remedy) const {
  throw ConfigError("config", cat(document_.name, ":", mark.line, ": ", what), remedy);
}

void YamlBuilder::begin_document(YamlMark mark) {
  if (has_document_) fail(mark, "a second document begins", "Keep one document per file: remove the line ---");
  has_document_ = true;
}

YamlId YamlBuilder::add_node(YamlNode node, std::string_view anchor) {
  const auto id = static_cast<YamlId>(document_.nodes.size());
  const YamlMark mark = node.mark;
  document_.nodes.push_back(std::move(node));
  expanded_nodes_.push_back(0);
  if (!anchor.empty()) anchors_.insert_or_assign(std::string(anchor), id);
  count(id, 1, mark);
  return id;
}

void YamlBuilder::count(YamlId into, uint64_t nodes, YamlMark mark) {
  expanded_nodes_[into] += nodes;  // both are at most limits_.nodes: no overflow
  if (expanded_nodes_[into] <= limits_.nodes && document_.nodes.size() <= limits_.nodes) return;
  fail(mark, cat("the file is too large once its aliases are expanded: more than ", limits_.nodes, " nodes"),
       "Configurations are short: check that this is the right file");
}

void YamlBuilder::scalar(const YamlScalar& scalar) {
  if (!open_.empty() && document_.at(open_.back().id).kind == YamlKind::Mapping && !open_.back().has_key)
    return accept_key(scalar);
  YamlNode node = typed(scalar);
  node.mark = scalar.mark;
  if (scalar.tag != kStringTag && scalar.tag != kNonSpecificTag && !tag_agrees(scalar.tag, node.kind)) {
    fail(scalar.mark, cat("the tag does not fit the value: tag=", scalar.tag, ", value=", scalar.text), "Remove the tag");
  }
  attach(add_node(std::move(node), scalar.anchor), scalar.mark);
}

void YamlBuilder::accept_key(const YamlScalar& scalar) {
  Frame& frame = open_.back();
  frame.key = scalar.text;
  frame.key_mark = scalar.mark;
  frame.has_key = true;
  frame.is_merge = scalar.plain && scalar.text == kMergeKey;
  const auto [earlier, is_new] = frame.key_lines.emplace(frame.key, scalar.mark.line);
  if (is_new) return;
  fail(scalar.mark, cat("the key occurs twice in one mapping: key=", frame.key, ", first line=", earlier->second),
       frame.is_merge ? "Merge several mappings by one list: <<: [*one, *two]"
                      : "Remove one of them; a preset overrides what it inherits without repeating it");
}

void YamlBuilder::alias(std::string_view anchor, YamlMark mark) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) {
    std::vector<std::string> names;
    for (const auto& [name, id] : anchors_) names.push_back(name);
    const auto near = nearest(anchor, names);
    fail(mark, cat("the alias names no anchor above it: alias=*", anchor),
         near.empty() ? std::string("Anchors are written &name") : cat("Nearest: *", join(near, ", *")));
  }
  const YamlId id = found->second;
  if (std::any_of(open_.begin(), open_.end(), [id](const Frame& frame) { return frame.id == id; })) {
    fail(mark, cat("the alias lies inside its own anchor: alias=*", anchor), "A value cannot contain itself");
  }
  attach(id, mark);
}

void YamlBuilder::begin(YamlKind kind, std::string_view anchor, std::string_view tag, YamlMark mark) {
  if (open_.size() >= limits_.depth) fail(mark, cat("nested too deeply: limit=", limits_.depth), "Configurations are flat");
  if (tag != kNonSpecificTag && !tag_agrees(tag, kind)) fail(mark, cat("unknown tag: ", tag), "Remove the tag");
  if (!open_.empty() && document_.at(open_.back().id).kind == YamlKind::Mapping && !open_.back().has_key) {
    fail(mark, cat("a key is ", kind_name(kind)), "Keys are plain words");
  }
  YamlNode node;
  node.kind = kind;
  node.mark = mark;
  Frame frame;
  frame.id = add_node(std::move(node), anchor);
  open_.push_back(std::move(frame));
}

void YamlBuilder::end() {
  Frame frame = std::move(open_.back());
  if (document_.at(frame.id).kind == YamlKind::Mapping) inherit(frame);
  open_.pop_back();
  attach(frame.id, document_.at(frame.id).mark);
}

void YamlBuilder::attach(YamlId value, YamlMark mark) {
  if (open_.empty()) {
    document_.root = value;
    return;
  }
  Frame& frame = open_.back();
  if (frame.is_merge && frame.has_key) return attach_merge(value, mark);
  count(frame.id, expanded_nodes_[value], mark);
  if (document_.at(frame.id).kind == YamlKind::Sequence) {
    document_.nodes[frame.id].items.push_back(value);
    return;
  }
  if (!frame.has_key) fail(mark, "a key is an alias", "Write the key itself");
  document_.nodes[frame.id].entries.push_back({frame.key, frame.key_mark, value});
  frame.has_key = false;
}

void YamlBuilder::attach_merge(YamlId value, YamlMark mark) {
  Frame& frame = open_.back();
  frame.has_key = false;
  const YamlNode& source = document_.at(value);
  const bool is_list = source.kind == YamlKind::Sequence;
  for (const YamlId id : is_list ? source.items : std::vector<YamlId>{value}) {
    if (document_.at(id).kind != YamlKind::Mapping) {
      fail(mark, cat("the merge key takes mappings: it is given ", kind_name(document_.at(id).kind)),
           "Write <<: *anchor or <<: [*one, *two]");
    }
    frame.merged.push_back(id);
  }
}

void YamlBuilder::inherit(Frame& frame) {
  for (const YamlId source : frame.merged) {
    // The loop uses indices: the two mappings' entries live in one vector of nodes, of which none is added here.
    for (const YamlEntry& entry : document_.at(source).entries) {
      if (!frame.key_lines.emplace(entry.key, entry.mark.line).second) continue;
      YamlEntry inherited = entry;
      ++inherited.distance;
      document_.nodes[frame.id].entries.push_back(std::move(inherited));
      count(frame.id, expanded_nodes_[entry.value], frame.key_mark);
    }
  }
}

YamlDocument YamlBuilder::finish() { return std::move(document_); }

}  // namespace welkin::config
