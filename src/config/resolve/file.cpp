// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/file.h"

#include <filesystem>

#include "config/draft/origin.h"
#include "config/flags/flag.h"
#include "config/resolve/paths.h"
#include "config/resolve/tutorial.h"
#include "config/schema/key.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::config {
namespace {

// True for a component or a map of the tutorials that holds a mapping, else for any key of the schema.
bool is_setting(const YamlDocument& document, const YamlEntry& entry) {
  const bool is_mapping = document.at(entry.value).kind == YamlKind::Mapping;
  return is_mapping ? is_key_prefix(entry.key) || entry.key == "options"
                    : document.at(entry.value).kind != YamlKind::Null || find_key(entry.key) != nullptr;
}

// The mapping of the entries for which `keep` holds, as a node of a copy of the document.
YamlDocument own_settings(const YamlDocument& document) {
  YamlDocument copy = document;
  std::erase_if(copy.nodes[copy.root].entries, [&](const YamlEntry& entry) { return !is_setting(document, entry); });
  return copy;
}

// A preset that is named as a component would be read as settings of it, each of which is unknown. It is told by its entries:
// most are keys, and not of this component. Which of the two was meant is for the user to say: to take it for a preset would
// leave misplaced settings out without a word.
void check_name(const YamlDocument& document, const YamlEntry& entry) {
  const YamlNode& node = document.at(entry.value);
  if (node.kind != YamlKind::Mapping || !is_key_prefix(entry.key)) return;
  const auto is_known = [](const std::string& name) { return find_key(name) != nullptr || is_key_prefix(name); };
  std::vector<std::string> own, others;
  for (const YamlEntry& inner : node.entries) {
    const bool is_own = is_known(cat(entry.key, ".", inner.key));
    if (is_own || is_known(inner.key)) (is_own ? own : others).push_back(inner.key);
  }
  if (others.size() <= own.size()) return;
  const std::string more = others.size() > 1 ? cat(" and ", others.size() - 1, " more") : "";
  throw ConfigError("config",
                    cat(document.name, ":", entry.mark.line, ": a preset cannot have the name of a component: ", entry.key,
                        ", whose settings these would be: ", entry.key, ".", others.front(), more),
                    cat("Rename the preset, for instance to ", entry.key, "_run. If settings for all presets are meant, take ",
                        others.front(), more, " out of ", entry.key, ", to the left margin"));
}

const YamlEntry& find_preset(const YamlDocument& document, const std::string& name) {
  const auto names = preset_names(document);
  const YamlEntry* entry = find_entry(document.top(), name);
  if (entry != nullptr && !is_setting(document, *entry)) return *entry;
  const auto near = nearest(name, names);
  if (entry != nullptr) {
    throw ConfigError("config",
                      cat(document.name, ":", entry->mark.line, ": no preset but settings for all presets: --config ", name),
                      "A preset is a mapping under a name that is neither a key nor a component. Rename it");
  }
  const std::string all = names.empty() ? "The file has no presets" : cat("Presets of the file: ", join(names, ", "));
  throw ConfigError("config", cat(document.name, ": unknown preset: --config ", name),
                    near.empty() ? all : cat("Nearest: ", join(near, ", "), ". ", all));
}

}  // namespace

std::optional<std::string> configuration_file(const CommandLine& command_line) {
  if (command_line.yaml_config) {
    if (path_exists(*command_line.yaml_config)) return command_line.yaml_config;
    throw ConfigError(
        "config", cat("the file does not exist: --yaml_config ", *command_line.yaml_config),
        cat("Looked in ", std::filesystem::current_path().string(), " for a relative path; the shipped files stand in config/"));
  }
  if (command_line.tutorial == Tutorial::None) return {};
  const char* file = is_unet_tutorial(command_line.tutorial) ? "UNet.yaml" : "ViT.yaml";
  const std::string own = cat("config/", tutorial_name(command_line.tutorial), "/", file);
  const std::string shared = cat("config/", file);
  if (path_exists(own)) return own;
  if (path_exists(shared)) return shared;
  throw ConfigError(
      "config",
      cat("the default file of --tutorial ", tutorial_name(command_line.tutorial), " does not exist: ", own, ", ", shared),
      cat("Looked in ", std::filesystem::current_path().string(),
          ". Give --yaml_config FILE, or start where the shipped folder config/ is: in the sources, or in share/welkin of an "
          "installed folder"));
}

YamlDocument read_configuration(const std::string& path) {
  std::string text;
  try {
    text = read_file(path, YamlLimits{}.bytes);
  } catch (const Error& error) {
    throw ConfigError("config", cat("the file cannot be read: ", path, ": ", error.what()), "Give a YAML file of at most 1 MiB");
  }
  return parse_yaml(text, path);
}

std::vector<std::string> preset_names(const YamlDocument& document) {
  std::vector<std::string> names;
  for (const YamlEntry& entry : document.top().entries) {
    if (!is_setting(document, entry)) names.push_back(entry.key);
  }
  return names;
}

void apply_file(Draft& draft, const YamlDocument& document, const std::optional<std::string>& preset) {
  for (const YamlEntry& entry : document.top().entries) check_name(document, entry);
  const YamlDocument settings = own_settings(document);
  apply_mapping(draft, settings, settings.root, Layer::File);
  if (!preset && preset_names(document).empty()) return;
  apply_mapping(draft, document, find_preset(document, preset.value_or("base")).value, Layer::Preset);
}

}  // namespace welkin::config
