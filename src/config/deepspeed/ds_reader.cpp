// SPDX-License-Identifier: Apache-2.0
#include "config/deepspeed/ds_reader.h"

#include <set>

#include "core/text.h"

namespace welkin::config {
namespace {

bool is_auto_text(const YamlNode& node) { return node.kind == YamlKind::String && node.text == "auto"; }

std::string shown(const YamlNode& node) {
  constexpr size_t kMost = 60;
  if (node.kind == YamlKind::Mapping || node.kind == YamlKind::Sequence) return std::string(kind_name(node.kind));
  return node.text.size() > kMost ? cat(node.text.substr(0, kMost), "...") : node.text;
}

std::vector<std::string> ds_names() {
  std::set<std::string> names;  // sections, too
  for (const DsKey& key : ds_keys()) {
    names.emplace(key.name);
    names.emplace(key.name.substr(0, key.name.find('.')));
  }
  return {names.begin(), names.end()};
}

}  // namespace

const YamlNode* DsReader::find(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || is_auto_text(document_.at(found->second))) return nullptr;
  return &document_.at(found->second);
}

bool DsReader::is_auto(std::string_view name) const {
  const auto found = values_.find(name);
  return found != values_.end() && is_auto_text(document_.at(found->second));
}

std::string DsReader::text(std::string_view name, DsConvert convert) {
  const YamlNode* node = find(name);
  if (node == nullptr) return "";
  const DsValue value = convert(*node);
  if (!value.problem.empty()) problem(name, cat(value.problem, ": ", shown(*node)), cat("Meaning: ", find_ds_key(name)->meaning));
  return value.text;
}

void DsReader::set(std::string_view path, const std::string& text, std::string_view name) {
  config_.settings.push_back({.path = std::string(path), .text = text, .place = place(name)});
}

void DsReader::problem(std::string_view name, std::string_view what, std::string_view remedy) {
  problems_.add(place(name), cat(name, " ", what), remedy);
}

std::string DsReader::place(std::string_view name) const {
  const auto line = lines_.find(name);
  return line == lines_.end() ? cat(config_.name, " ", name) : cat(config_.name, ":", line->second, " ", name);
}

void DsReader::walk(const std::string& prefix, YamlId mapping) {
  for (const YamlEntry& entry : document_.at(mapping).entries)
    visit(prefix.empty() ? entry.key : cat(prefix, ".", entry.key), entry);
}

void DsReader::visit(const std::string& name, const YamlEntry& entry) {
  const YamlNode& node = document_.at(entry.value);
  lines_[name] = entry.mark.line;
  const DsKey* key = find_ds_key(name);
  if (is_ds_section(name)) {
    if (node.kind == YamlKind::Mapping) return walk(name, entry.value);
    if (node.kind == YamlKind::Null) return;
    if (is_auto_text(node)) return config_.own.push_back(name);
    return problem(name, cat("wants a mapping, is ", kind_name(node.kind)), "See docs/reference/ds_config.md for its keys");
  }
  // Further keys of a section with a row of its own count as that section: its row covers them.
  if (key == nullptr) {
    const size_t dot = name.rfind('.');
    const DsKey* section = dot == std::string::npos ? nullptr : find_ds_key(std::string_view(name).substr(0, dot));
    if (section == nullptr) return unknown(name);
    key = section;
    if (key->rule == DsRule::NoEffect) return config_.without_effect.push_back(name);
  }
  if (node.kind == YamlKind::Null) return;
  values_[name] = entry.value;
  if (is_auto_text(node)) return config_.own.push_back(name);
  apply(*key, node);
}

void DsReader::apply(const DsKey& key, const YamlNode& node) {
  switch (key.rule) {
    case DsRule::Combined:
      return;
    case DsRule::NoEffect:
      return config_.without_effect.push_back(std::string(key.name));
    case DsRule::OnlyOff:
      if (!is_off(key, node)) problem(key.name, cat("cannot be done here: ", shown(node)), key.meaning);
      return;
    case DsRule::Key:
      break;
  }
  const DsValue value = key.convert != nullptr ? key.convert(node) : DsValue{.text = node.text};
  if (!value.problem.empty()) {
    return problem(key.name, cat(value.problem, ": ", shown(node)), cat("Meaning: ", key.meaning));
  }
  if (value.text.empty()) return config_.without_effect.push_back(std::string(key.name));
  set(key.target, value.text, key.name);
}

bool DsReader::is_off(const DsKey& key, const YamlNode& node) const {
  if (node.kind == YamlKind::Mapping) {
    const YamlEntry* enabled = find_entry(node, "enabled");
    return node.entries.empty() || (enabled != nullptr && is_off(key, document_.at(enabled->value)));
  }
  if (node.kind == YamlKind::Bool) return !node.boolean;
  if (node.kind == YamlKind::Int && node.integer == 0) return true;
  return node.kind == YamlKind::Null || node.text == "none" || (!key.off.empty() && node.text == key.off);
}

void DsReader::unknown(const std::string& name) {
  static const std::vector<std::string> names = ds_names();
  const auto near = problems_.full() ? std::vector<std::string>{} : nearest(name, names);
  problem(name, "is unknown",
          near.empty() ? "All keys are listed in docs/reference/ds_config.md" : cat("Nearest: ", join(near, ", ")));
}

DsWhole read_ds_whole(DsReader& reader, std::string_view name, int64_t least) {
  DsWhole whole{.is_auto = reader.is_auto(name), .place = reader.place(name)};
  const std::string text = reader.text(name, ds_whole);
  if (text.empty()) return whole;
  const auto value = static_cast<int64_t>(reader.find(name)->number);
  if (value < least) {
    reader.problem(name, cat("is below ", least, ": ", value), cat("Meaning: ", find_ds_key(name)->meaning));
    return whole;
  }
  whole.value = value;
  return whole;
}

}  // namespace welkin::config
