// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/resolve.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "config/draft/draft.h"
#include "config/draft/known_names.h"
#include "config/draft/origin.h"
#include "config/resolve/derive.h"
#include "config/resolve/ds_settings.h"
#include "config/resolve/file.h"
#include "config/resolve/tutorial.h"
#include "config/schema/key.h"
#include "config/validate/validate.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::config {
namespace {

struct Request {
  Tutorial tutorial = Tutorial::None;
  std::optional<std::string> preset;
  std::optional<std::string> ds_config;
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
  const int64_t model_size = std::max(int64_t{1}, draft.config.parallel.model_size());  // a wrong one is told later
  const int64_t world_size = request.world_size == kOneReplica ? model_size : request.world_size;
  derive(draft, world_size, request.known);
  validate_model(draft);
  validate_data(draft);
  validate_loop(draft, world_size);
  validate_names(draft, request.known);
  note_inert_keys(draft);
}

Draft checked_draft(const std::optional<YamlDocument>& document, const Request& request) {
  Draft draft;
  if (document) {
    draft.config.config = request.preset.value_or("base");
    apply_file(draft, *document, request.preset);
    if (draft.has("data.data_root")) draft.file_data_root = draft.config.data.data_root;
    if (draft.has("output.log_root")) draft.file_log_root = draft.config.output.log_root;
  }
  std::vector<Setting> settings;
  if (request.ds_config) settings = read_ds_settings(draft, *request.ds_config, request.settings, request.world_size);
  settings.insert(settings.end(), request.settings.begin(), request.settings.end());
  apply_settings(draft, settings);
  resolve_tutorial(draft, request.tutorial);
  check_draft(draft, request);
  draft.problems.throw_if_any();
  return draft;
}

Resolved resolve_document(const std::optional<YamlDocument>& document, const Request& request) {
  Draft draft = checked_draft(document, request);
  return {.config = std::move(draft.config),
          .origins = all_origins(draft),
          .notes = std::move(draft.notes),
          .file_order = std::move(draft.names),
          .presets = document ? preset_names(*document) : std::vector<std::string>{}};
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

std::string only_preset(const YamlDocument& document) {
  const auto presets = preset_names(document);
  if (presets.size() == 1) return presets.front();
  throw ConfigError("config", cat(document.name, ": a saved configuration holds one preset: found=", presets.size()),
                    "Use the file as it was saved");
}

// Notes each flag that the environment overrules: nothing that the user typed is dropped silently.
void note_overruled(Resolved& resolved, const std::vector<Setting>& typed, const std::vector<Setting>& environment) {
  for (const Setting& winner : environment) {
    for (const Setting& loser : typed) {
      if (find_key(loser.key) != find_key(winner.key) || loser.text == winner.text) continue;
      resolved.notes.push_back(cat(loser.flag, " ", loser.text, " has no effect: the environment has ", winner.flag));
    }
  }
}

}  // namespace

std::vector<Setting> environment_settings(const std::function<const char*(const char*)>& variable) {
  const char* tf32 = variable("NVIDIA_TF32_OVERRIDE");
  if (tf32 == nullptr || std::string_view(tf32) != "0") return {};
  return {{.key = "backend.tf32", .text = "off", .flag = "NVIDIA_TF32_OVERRIDE=0"}};
}

Resolved resolve(const CommandLine& command_line, int64_t world_size, const KnownNames& known) {
  const std::optional<std::string> path = configuration_file(command_line);
  if (!path && !sets_model(command_line)) nothing_given();
  if (!path && command_line.config) {
    throw ConfigError("config", cat("a preset is named, but no file: --config ", *command_line.config),
                      "Give --yaml_config FILE");
  }
  std::optional<YamlDocument> document;
  if (path) document = read_configuration(*path);
  const auto environment = environment_settings([](const char* name) { return std::getenv(name); });
  std::vector<Setting> settings = command_line.settings;
  settings.insert(settings.end(), environment.begin(), environment.end());
  Resolved resolved = resolve_document(document, {.tutorial = command_line.tutorial,
                                                  .preset = command_line.config,
                                                  .ds_config = command_line.ds_config,
                                                  .settings = settings,
                                                  .world_size = world_size,
                                                  .known = known});
  note_overruled(resolved, command_line.settings, environment);
  if (path) resolved.config.yaml_config = std::filesystem::absolute(*path).lexically_normal().string();
  return resolved;
}

RunConfig from_yaml(std::string_view text, const std::string& name, int64_t world_size) {
  const YamlDocument document = parse_yaml(text, name);
  return checked_draft(document, {.tutorial = Tutorial::None,
                                  .preset = only_preset(document),
                                  .ds_config = {},
                                  .settings = {},
                                  .world_size = world_size,
                                  .known = {}})
      .config;
}

RunConfig saved_values(std::string_view text, const std::string& name) {
  const YamlDocument document = parse_yaml(text, name);
  Draft draft;
  draft.config.config = only_preset(document);
  apply_file(draft, document, draft.config.config);
  validate_misnamed(draft);
  draft.problems.throw_if_any();
  return draft.config;
}

}  // namespace welkin::config
