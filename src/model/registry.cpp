// SPDX-License-Identifier: Apache-2.0
// The table of models.
#include "model/registry.h"

#include "core/error.h"
#include "core/text.h"

namespace welkin::model {

void Registry::add(std::string name, ModelEntry entry) {
  if (entries_.contains(name)) {
    throw ConfigError("model", cat("a model of this name is already there: name=", name),
                      "Give the plug-in's model another name");
  }
  entries_.emplace(std::move(name), std::move(entry));
}

const ModelEntry& Registry::at(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  throw ConfigError("model", cat("no such model: model=", name),
                    cat("Choose one of: ", join(names(), ", "), "; or load the plug-in that brings it with --plugin"));
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const auto& entry : entries_) names.push_back(entry.first);
  return names;
}

std::map<std::string, std::string> Registry::default_losses() const {
  std::map<std::string, std::string> losses;
  for (const auto& [name, entry] : entries_) losses.emplace(name, entry.default_loss);
  return losses;
}

}  // namespace welkin::model
