// SPDX-License-Identifier: Apache-2.0
// Checks that follow from the schema alone.
#include <algorithm>
#include <string>
#include <vector>

#include "config/resolve/validate.h"
#include "config/schema/key.h"
#include "config/schema/value.h"
#include "core/text.h"

namespace welkin::config {
namespace {

void put_back(RunConfig& config, RunConfig& defaults, const Key& key) {
  std::visit([&](auto accessor) { accessor(config) = accessor(defaults); }, key.field);
}

std::string remedy_for(const Key& key, const RunConfig& config) {
  std::string remedy = cat("Meaning: ", key.summary);
  if (key.choices.empty()) return remedy;
  std::vector<std::string> choices;
  for (const auto choice : split(key.choices, '|')) choices.emplace_back(choice);
  const auto near = nearest(value_text(config, key), choices);
  return near.empty() ? remedy : cat("Nearest: ", join(near, ", "));
}

void check_names(Draft& draft, std::string_view path, const std::string& value, const std::vector<std::string>& known) {
  if (known.empty() || value.empty() || std::find(known.begin(), known.end(), value) != known.end()) return;
  const auto near = nearest(value, known);
  draft.problems.add(draft.place(path), cat("unknown name: ", key_at(path).flat, "=", value),
                     cat(near.empty() ? "Known: " : "Nearest: ", join(near.empty() ? known : near, ", ")));
}

}  // namespace

void validate_rows(Draft& draft) {
  RunConfig defaults;
  for (const Key& key : schema()) {
    const auto problem = check(draft.config, defaults, key);
    if (!problem) continue;
    draft.problems.add(draft.place(key.path), cat(key.flat, " ", *problem, ": ", key.flat, "=", value_text(draft.config, key)),
                       remedy_for(key, draft.config));
    put_back(draft.config, defaults, key);
    draft.rejected.emplace(key.path);
  }
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
    if (draft.origin(key.path).layer != Layer::Default && !has_effect(key, draft.config)) names.emplace_back(key.flat);
  }
  if (!names.empty()) draft.notes.push_back(cat("known keys without effect in this run: ", join(names, ", ")));
}

}  // namespace welkin::config
