// SPDX-License-Identifier: Apache-2.0
// A table of one kind of thing that can be built by name: the rows of Registries other than models and data sets.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace welkin::train {

template <typename Factory>
class FactoryRegistry {
 public:
  // `kind` names the rows in messages and is the configuration's key: "loss", "schedule", "optimizer".
  explicit FactoryRegistry(std::string kind) : kind_(std::move(kind)) {}

  // Throws ConfigError when the name is taken: two plug-ins, or a plug-in and a built-in row.
  void add(const std::string& name, Factory factory) {
    if (!factories_.emplace(name, std::move(factory)).second) {
      throw ConfigError("registry", cat("the name is taken: ", kind_, "=", name), "Register it under another name");
    }
  }

  // Replaces the row of that name, if there is one, else adds it.
  void replace(const std::string& name, Factory factory) { factories_.insert_or_assign(name, std::move(factory)); }

  // Throws ConfigError with the known names.
  const Factory& at(const std::string& name) const {
    const auto found = factories_.find(name);
    if (found == factories_.end()) {
      throw ConfigError("registry", cat("unknown ", kind_, ": ", kind_, "=", name),
                        cat("Choose one of: ", join(names(), ", "), "; or load its plug-in with --plugin"));
    }
    return found->second;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, factory] : factories_) all.push_back(name);
    return all;
  }

 private:
  std::string kind_;
  std::map<std::string, Factory> factories_;
};

}  // namespace welkin::train
