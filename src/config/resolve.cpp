// SPDX-License-Identifier: Apache-2.0
#include "config/resolve.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "config/derive.h"
#include "config/file.h"
#include "config/key.h"
#include "config/tutorial.h"
#include "config/validate.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::config {
namespace {

struct Request {
  Tutorial tutorial = Tutorial::None;
  std::optional<std::string> preset;
  std::vector<Setting> settings;
  int64_t world_size = 1;
  KnownNames known;
};

std::map<std::string, Origin> all_origins(const Draft& draft) {
  std::map<std::string, Origin> origins;
  for (const Key& key : schema()) origins[std::string(key.path)] = draft.origin(key.path);
  return origins;
}

void check_draft(Draft& draft, const Request& request) {
  validate_rows(draft);
  derive(draft, request.world_size);
  validate_model(draft);
  validate_data(draft);
  validate_loop(draft, request.world_size);
  validate_names(draft, request.known);
  note_inert_keys(draft);
}

Resolved resolve_document(const std::optional<YamlDocument>& document, const Request& request) {
  Draft draft;
  std::vector<std::string> presets;
  if (document) {
    presets = preset_names(*document);
    draft.config.config = request.preset.value_or("base");
    apply_file(draft, *document, request.preset);
  }
  apply_settings(draft, request.settings);
  settle_tutorial(draft, request.tutorial);
  check_draft(draft, request);
  draft.problems.throw_if_any();
  return {.config = draft.config,
          .origins = all_origins(draft),
          .notes = draft.notes,
          .file_order = draft.names,
          .presets = std::move(presets)};
}

[[noreturn]] void nothing_given() {
  throw ConfigError("config", "no configuration is given",
                    "Give --yaml_config FILE, or --tutorial sc21|sc22|sc23|dl4sci25 for ./config/UNet.yaml or ./config/ViT.yaml, "
                    "or --set model=NAME");
}

bool sets_model(const CommandLine& command_line) {
  for (const Setting& setting : command_line.settings) {
    const Key* key = find_key(setting.key);
    if (key != nullptr && key->path == "model.model") return true;
  }
  return false;
}

}  // namespace

Resolved resolve(const CommandLine& command_line, int64_t world_size, const KnownNames& known) {
  const std::optional<std::string> path = configuration_file(command_line);
  if (!path && !sets_model(command_line)) nothing_given();
  if (!path && command_line.config) {
    throw ConfigError("config", cat("a preset is named, but no file: --config ", *command_line.config),
                      "Give --yaml_config FILE");
  }
  std::optional<YamlDocument> document;
  if (path) document = read_configuration(*path);
  Resolved resolved = resolve_document(document, {.tutorial = command_line.tutorial,
                                                  .preset = command_line.config,
                                                  .settings = command_line.settings,
                                                  .world_size = world_size,
                                                  .known = known});
  if (path) resolved.config.yaml_config = std::filesystem::absolute(*path).lexically_normal().string();
  return resolved;
}

RunConfig from_yaml(std::string_view text, const std::string& name, int64_t world_size) {
  const YamlDocument document = parse_yaml(text, name);
  const auto presets = preset_names(document);
  if (presets.size() != 1) {
    throw ConfigError("config", cat(name, ": a saved configuration holds one preset: found=", presets.size()),
                      "Use the file as it was saved");
  }
  return resolve_document(
             document,
             {.tutorial = Tutorial::None, .preset = presets.front(), .settings = {}, .world_size = world_size, .known = {}})
      .config;
}

}  // namespace welkin::config
