// SPDX-License-Identifier: Apache-2.0
#include "config/schema/key.h"

#include <algorithm>
#include <map>
#include <set>

#include "config/schema/builtin_models.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::config {
namespace {

std::vector<Key> all_rows() {
  std::vector<Key> rows = {{.flat = "tutorial",
                            .path = "tutorial",
                            .field = &member<&RunConfig::tutorial>,
                            .summary = "the tutorial whose rules hold; inferred from the keys of its files",
                            .null_is_first = true}};
  for (const auto& more : {model_keys(), data_keys(), optimization_keys(), rule_keys(), backend_keys(), parallel_keys(),
                           health_keys(), loop_keys()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (Key& key : rows) {
    if (const std::string_view names = enum_names(key.field); !names.empty()) key.choices = names;
  }
  return rows;
}

template <typename T>
constexpr std::string_view kNamesOfType = kNames<T>;
template <typename T>
constexpr std::string_view kNamesOfType<std::optional<T>> = kNames<T>;

std::map<std::string_view, const Key*> keys_by_name() {
  std::map<std::string_view, const Key*> index;
  for (const Key& key : schema()) {
    index.emplace(key.flat, &key);
    index.emplace(key.path, &key);
    for (const std::string_view alias : split(key.aliases, '|')) index.emplace(alias, &key);
  }
  return index;
}

std::map<std::string_view, const Key*> keys_by_path() {
  std::map<std::string_view, const Key*> index;
  for (const Key& key : schema()) index.emplace(key.path, &key);
  return index;
}

// The prefixes of all paths: those of "a.b.c" are a and a.b.
std::set<std::string_view> key_prefixes() {
  std::set<std::string_view> prefixes;
  for (const Key& key : schema()) {
    for (const std::string_view name : {key.flat, key.path}) {
      for (size_t dot = 0; (dot = name.find('.', dot)) != std::string_view::npos; ++dot) prefixes.insert(name.substr(0, dot));
    }
  }
  return prefixes;
}

std::vector<std::string> names_of_all_keys() {
  std::vector<std::string> names;
  for (const Key& key : schema()) {
    names.emplace_back(key.flat);
    for (const std::string_view alias : split(key.aliases, '|')) names.emplace_back(alias);
    if (key.path != key.flat) names.emplace_back(key.path);
  }
  return names;
}

}  // namespace

TutorialBits bit_of(Tutorial tutorial) {
  switch (tutorial) {
    case Tutorial::Sc21:
      return kSc21;
    case Tutorial::Sc22:
      return kSc22;
    case Tutorial::Sc23:
      return kSc23;
    case Tutorial::Dl4sci25:
      return kDl25;
    case Tutorial::None:
      break;
  }
  return 0;
}

const std::vector<Key>& schema() {
  static const std::vector<Key> rows = all_rows();
  return rows;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

const Key* find_key(std::string_view name) {
  static const std::map<std::string_view, const Key*> index = keys_by_name();
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

const Key& key_at(std::string_view path) {
  static const std::map<std::string_view, const Key*> index = keys_by_path();
  const auto found = index.find(path);
  WELKIN_CHECK(found != index.end(), cat("no key of the schema has this path: ", path));
  return *found->second;
}

std::string_view enum_names(const Field& field) {
  return std::visit([]<typename T>(Accessor<T>) { return kNamesOfType<T>; }, field);
}

bool is_key_prefix(std::string_view prefix) {
  static const std::set<std::string_view> prefixes = key_prefixes();
  return prefixes.contains(prefix);
}

const std::vector<std::string>& all_key_names() {
  static const std::vector<std::string> names = names_of_all_keys();
  return names;
}

std::string_view component_of(const Key& key) {
  const size_t dot = key.path.find('.');
  return dot == std::string_view::npos ? std::string_view("run") : key.path.substr(0, dot);
}

bool has_effect(const Key& key, const RunConfig& config) {
  const std::string& model = config.model.model;
  const std::string& dataset = config.data.dataset;
  if (!key.models.empty()) return !key.inert && (!is_builtin(model) || is_one_of(model, key.models));
  switch (key.scope) {
    case Scope::Any:
      return !key.inert;
    case Scope::Vit:
      return !key.inert && (!is_builtin(model) || model == "vit");
    case Scope::Unet:
      return !key.inert && (!is_builtin(model) || model == "unet3d");
    case Scope::Fields:
      return !key.inert && dataset != "nbody";
    case Scope::Boxes:
      return !key.inert && dataset != "era5";
    case Scope::Online:
      return !key.inert && dataset == kOnline;
  }
  return true;
}

}  // namespace welkin::config
