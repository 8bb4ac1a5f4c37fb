// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/same_run.h"

#include <vector>

#include "config/resolve/paths.h"
#include "config/schema/key.h"
#include "config/schema/value.h"
#include "core/text.h"

namespace welkin::config {
namespace {

// A path below data_root means the same file below another data_root.
std::string comparable(const RunConfig& config, const Key& key) {
  std::string text = value_text(config, key);
  if (key.root != "data") return text;
  const std::string root = without_trailing_slash(config.data.data_root);
  const size_t at = text.find(root);
  return at == std::string::npos || at > 1 ? text : text.replace(at, root.size(), "/data");
}

bool same_options(const RunConfig& a, const RunConfig& b, std::vector<std::string>& differences) {
  if (a.options == b.options) return true;
  differences.emplace_back("options");
  return false;
}

// The differences of a and b in the rows that `counts` picks.
template <typename Predicate>
std::vector<std::string> differences_in(const RunConfig& a, const RunConfig& b, Predicate counts) {
  std::vector<std::string> differences;
  for (const Key& key : schema()) {
    if (!counts(key) || (!has_effect(key, a) && !has_effect(key, b))) continue;
    const std::string one = comparable(a, key);
    const std::string other = comparable(b, key);
    if (one != other) differences.push_back(cat(key.flat, "=", one, " and ", other));
  }
  return differences;
}

}  // namespace

std::string pinned_difference(const RunConfig& a, const RunConfig& b) {
  return join(differences_in(a, b, [](const Key& key) { return key.pinned; }), ", ");
}

bool same_run(const RunConfig& a, const RunConfig& b, std::string* difference) {
  constexpr size_t kShown = 4;
  std::vector<std::string> differences = differences_in(a, b, [](const Key& key) { return !key.free; });
  same_options(a, b, differences);
  if (differences.size() > kShown) {
    const size_t more = differences.size() - kShown;
    differences.resize(kShown);
    differences.push_back(cat(more, " more"));
  }
  if (difference != nullptr) *difference = join(differences, ", ");
  return differences.empty();
}

}  // namespace welkin::config
