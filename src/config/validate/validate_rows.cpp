// SPDX-License-Identifier: Apache-2.0
// Checks that follow from the schema alone.
#include <algorithm>
#include <string>
#include <vector>

#include "config/draft/known_names.h"
#include "config/draft/origin.h"
#include "config/schema/key.h"
#include "config/schema/value.h"
#include "config/validate/validate.h"
#include "config/yaml/yaml_scalar.h"
#include "core/text.h"

namespace welkin::config {
namespace {

void put_back(RunConfig& config, RunConfig& defaults, const Key& key) {
  std::visit([&](auto accessor) { accessor(config) = accessor(defaults); }, key.field);
}

std::string remedy_for(const Key& key, const std::string& shown) {
  std::string remedy = cat("Meaning: ", key.summary);
  if (key.choices.empty()) return remedy;
  std::vector<std::string> choices;
  for (const auto choice : split(key.choices, '|')) choices.emplace_back(choice);
  const auto near = nearest(shown, choices);
  return near.empty() ? remedy : cat("Nearest: ", join(near, ", "));
}

std::string text_of_name(const std::string& name) { return name.empty() ? "null" : quote_if_needed(name); }

void check_names(Draft& draft, std::string_view path, const std::string& value, const std::vector<std::string>& known) {
  if (known.empty() || value.empty() || std::find(known.begin(), known.end(), value) != known.end()) return;
  const auto near = nearest(value, known);
  draft.problems.add(draft.place(path), cat("unknown name: ", key_at(path).flat, "=", value),
                     cat(near.empty() ? "Known: " : "Nearest: ", join(near.empty() ? known : near, ", ")));
}

void validate_row(Draft& draft, RunConfig& defaults, const Key& key) {
  const auto misnamed = draft.misnamed.find(key.path);
  const bool is_misnamed = misnamed != draft.misnamed.end();
  const auto problem = is_misnamed ? check_choice(misnamed->second, key) : check(draft.config, defaults, key);
  if (!problem) return;
  const std::string shown = is_misnamed ? text_of_name(misnamed->second) : value_text(draft.config, key);
  draft.problems.add(draft.place(key.path), cat(key.flat, " ", *problem, ": ", key.flat, "=", shown), remedy_for(key, shown));
  put_back(draft.config, defaults, key);
  draft.rejected.emplace(key.path);
}

}  // namespace

void validate_rows(Draft& draft) {
  RunConfig defaults;
  for (const Key& key : schema()) validate_row(draft, defaults, key);
}

void validate_misnamed(Draft& draft) {
  RunConfig defaults;
  for (const auto& [path, name] : draft.misnamed) validate_row(draft, defaults, key_at(path));
}

void validate_names(Draft& draft, const KnownNames& known) {
  check_names(draft, "model.model", draft.config.model.model, known.models);
  check_names(draft, "data.dataset", draft.config.data.dataset, known.datasets);
  check_names(draft, "loss.loss", draft.config.loss.loss, known.losses);
  check_names(draft, "optimizer.optimizer", draft.config.optimizer.optimizer, known.optimizers);
  check_names(draft, "schedule.schedule", draft.config.schedule.schedule, known.schedules);
}

void note_inert_keys(Draft& draft) {
  std::vector<std::string> names;
  for (const Key& key : schema()) {
    const auto given = draft.given.find(key.path);
    const bool is_asked_for = given != draft.given.end() && given->second.origin.layer != Layer::Default;
    if (is_asked_for && !has_effect(key, draft.config)) names.emplace_back(key.flat);
  }
  if (!names.empty()) draft.notes.push_back(cat("known keys without effect in this run: ", join(names, ", ")));
}

}  // namespace welkin::config
