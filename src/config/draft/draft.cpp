// SPDX-License-Identifier: Apache-2.0
#include "config/draft/draft.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "config/schema/key.h"
#include "config/schema/value.h"
#include "config/yaml/yaml_scalar.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::config {
namespace {

constexpr std::string_view kOptions = "options";
constexpr int64_t kFileRank = 1;
constexpr int64_t kPresetRank = 1'000'000;  // less the distance; flags rank above it by their order

struct Source {
  Layer layer = Layer::Preset;
  std::string place;
  int64_t rank = 0;
  int64_t distance = 0;  // of merge keys, for entries inside this one
};

void unknown_key(Draft& draft, const std::string& name, std::string_view value, const Source& source) {
  const auto near = draft.problems.full() ? std::vector<std::string>{} : nearest(name, all_key_names());
  const std::string shown = value.size() > 60 ? cat(value.substr(0, 60), "...") : std::string(value);
  draft.problems.add(source.place, cat("unknown key: ", name, shown.empty() ? "" : "=", shown),
                     near.empty() ? "All keys are listed in docs/reference/keys.md" : cat("Nearest: ", join(near, ", ")));
}

// The tutorials' rule: the string None at the top level of a configuration is null.
bool is_none(const YamlNode& node) { return node.kind == YamlKind::String && node.text == "None"; }

void apply_value(Draft& draft, const Key& key, const std::string& name, const YamlDocument& document, YamlId value,
                 const Source& source) {
  const auto earlier = draft.given.find(key.path);
  if (earlier != draft.given.end() && earlier->second.rank > source.rank) return;
  if (earlier != draft.given.end() && earlier->second.rank == source.rank) {
    draft.problems.add(source.place, cat(name, " is given twice under different names, first at ", earlier->second.origin.text),
                       "Remove one of them");
  }
  draft.misnamed.erase(std::string(key.path));
  if (const auto misnamed = unknown_choice(key, document.at(value))) {
    draft.misnamed.emplace(key.path, *misnamed);
    draft.rejected.erase(std::string(key.path));
  } else if (const auto problem = assign(draft.config, key, document, value)) {
    draft.problems.add(source.place, cat(name, " ", *problem),
                       cat(problem->starts_with("wants a list") ? "A list is written [a, b]. " : "", "Meaning: ", key.summary));
    draft.rejected.emplace(key.path);
  } else {
    draft.rejected.erase(std::string(key.path));
  }
  const bool was_integer = document.at(value).kind == YamlKind::Int;
  draft.given[std::string(key.path)] = {.origin = {source.layer, was_integer, source.place}, .rank = source.rank};
}

void apply_option(Draft& draft, const std::string& name, const YamlNode& node, const Source& source) {
  if (node.kind == YamlKind::Mapping || node.kind == YamlKind::Sequence) {
    draft.problems.add(source.place, cat(name, " is ", kind_name(node.kind)), "An option of a plug-in is a word or a number");
    return;
  }
  draft.config.options.insert_or_assign(name.substr(kOptions.size() + 1), node.text);
}

// A mapping on the command line has no layer of its own: its entries keep the flag's place and rank.
void apply_nested(Draft& draft, const std::string& name, const YamlDocument& document, YamlId mapping, const Source& source);

// One entry of a mapping or of the command line: a key, an option, or a mapping of these.
void apply_entry(Draft& draft, const std::string& name, const YamlDocument& document, YamlId value, const Source& source) {
  static const YamlDocument null_document{.name = "None", .nodes = {YamlNode{}}, .root = 0};
  const YamlNode& node = document.at(value);
  if (name.starts_with("options.")) return apply_option(draft, name, node, source);
  const bool is_mapping = node.kind == YamlKind::Mapping;
  if (is_mapping && (is_key_prefix(name) || name == kOptions)) return apply_nested(draft, name, document, value, source);
  const Key* key = find_key(name);
  if (source.layer != Layer::Flag) draft.names.push_back(name);
  if (key == nullptr) return unknown_key(draft, name, node.text, source);
  const bool is_top_level = name.find('.') == std::string::npos;
  if (is_top_level && is_none(node)) return apply_value(draft, *key, name, null_document, 0, source);
  apply_value(draft, *key, name, document, value, source);
}

void apply_nested(Draft& draft, const std::string& name, const YamlDocument& document, YamlId mapping, const Source& source) {
  if (source.layer != Layer::Flag) return apply_mapping(draft, document, mapping, source.layer, name, source.distance);
  for (const YamlEntry& entry : document.at(mapping).entries)
    apply_entry(draft, cat(name, ".", entry.key), document, entry.value, source);
}

// A string key takes the text as it stands, unless it is quoted or null, or a map of the keys below it (lr_schedule, model).
bool is_verbatim(const Setting& setting) {
  if (setting.key.starts_with("options.")) return true;
  const Key* key = find_key(setting.key);
  const std::string& text = setting.text;
  if (text.starts_with('{') && is_key_prefix(setting.key)) return false;
  return key != nullptr && is_text(*key) && !text.empty() && text != "null" && text != "~" && text[0] != '\'' && text[0] != '"';
}

// True for a list of names as a flag has it: val_loss,5.
bool is_plain_list(const Setting& setting) {
  const Key* key = find_key(setting.key);
  const std::string& text = setting.text;
  return key != nullptr && key->is_flag && is_text_list(*key) && !text.empty() && text[0] != '[' && text != "null" && text != "~";
}

std::string quoted_list(std::string_view text) {
  std::string list;
  for (const std::string_view item : split(text, ',')) list += cat(list.empty() ? "" : ", ", quote_if_needed(item));
  return cat("[", list, "]");
}

YamlDocument document_of(const Setting& setting) {
  if (is_verbatim(setting)) return string_value(setting.text, setting.flag);
  return parse_yaml_value(is_plain_list(setting) ? quoted_list(setting.text) : setting.text, setting.flag);
}

}  // namespace

bool Draft::is_sound(std::initializer_list<std::string_view> paths) const {
  return std::none_of(paths.begin(), paths.end(), [&](std::string_view path) { return rejected.contains(path); });
}

int64_t Draft::rank(std::string_view path) const {
  const auto found = given.find(path);
  return found == given.end() ? 0 : found->second.rank;
}

Origin Draft::origin(std::string_view path) const {
  const auto found = given.find(path);
  return found == given.end() ? Origin{} : found->second.origin;
}

std::string Draft::place(std::string_view path) const { return has(path) ? origin(path).text : std::string(); }

std::string Draft::show(std::string_view path) const {
  const Key& key = key_at(path);
  return cat(key.flat, "=", value_text(config, key), " (", origin(path).text, ")");
}

void Draft::derived(std::string_view path, std::string_view from) {
  given[std::string(path)] = {.origin = {.text = cat("from ", from)}, .rank = 0};
}

void apply_mapping(Draft& draft, const YamlDocument& document, YamlId mapping, Layer layer, const std::string& prefix,
                   int64_t outer) {
  for (const YamlEntry& entry : document.at(mapping).entries) {
    const std::string name = prefix.empty() ? entry.key : cat(prefix, ".", entry.key);
    Source source{.layer = layer, .place = cat(document.name, ":", entry.mark.line), .distance = outer + entry.distance};
    source.rank = layer == Layer::File ? kFileRank : kPresetRank - std::min(source.distance, kPresetRank - kFileRank - 1);
    apply_entry(draft, name, document, entry.value, source);
  }
}

void apply_settings(Draft& draft, const std::vector<Setting>& settings) {
  int64_t rank = kPresetRank;
  for (const Setting& setting : settings) {
    const Source source{.layer = Layer::Flag, .place = setting.flag, .rank = ++rank};
    std::optional<YamlDocument> document;
    try {
      document = document_of(setting);
    } catch (const ConfigError&) {
      draft.problems.add(setting.flag, cat("the value is not valid: ", setting.text),
                         "Write a word, a number or a list: --set img_size=[32,64]");
      if (const Key* key = find_key(setting.key)) draft.rejected.emplace(key->path);
      continue;
    }
    apply_entry(draft, setting.key, *document, document->root, source);
  }
}

}  // namespace welkin::config
