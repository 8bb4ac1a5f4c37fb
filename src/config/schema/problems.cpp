// SPDX-License-Identifier: Apache-2.0
#include "config/schema/problems.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace welkin::config {

void Problems::add(std::string_view where, std::string_view what, std::string_view remedy) {
  if (full()) {
    ++more_;
    return;
  }
  Problem problem{where.empty() ? std::string(what) : cat(where, ": ", what), std::string(remedy)};
  const bool known = std::any_of(found_.begin(), found_.end(), [&](const Problem& other) { return other.what == problem.what; });
  if (!known) found_.push_back(std::move(problem));
}

void Problems::throw_if_any() const {
  if (found_.empty()) return;
  if (found_.size() == 1) throw ConfigError("config", found_.front().what, found_.front().remedy);
  std::string text = cat(found_.size() + more_, " problems");
  if (more_ > 0) text += cat(", of which the first ", found_.size());
  for (size_t i = 0; i < found_.size(); ++i) {
    text += cat(i == 0 ? ":" : ".", "\n  ", found_[i].what);
    if (i + 1 < found_.size()) text += cat(". ", found_[i].remedy);
  }
  throw ConfigError("config", text, found_.back().remedy);
}

}  // namespace welkin::config
