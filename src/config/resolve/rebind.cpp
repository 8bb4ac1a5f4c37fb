// SPDX-License-Identifier: Apache-2.0
// The tutorials' files name /data and /logs, which exist only through container binds: --data_root and --log_root replace
// them. The file of a run folder names these roots itself and has its paths below them. Where a flag gives another root,
// these paths move with it.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "config/draft/origin.h"
#include "config/resolve/derive.h"
#include "config/resolve/paths.h"
#include "config/schema/key.h"

namespace welkin::config {
namespace {

bool lies_under(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/' || root.ends_with('/'));
}

// A path that lies under the new root already has been rebound before.
std::string rebound(const std::string& path, std::string_view prefix, const std::string& root) {
  if (root == prefix || lies_under(path, root) || !lies_under(path, prefix)) return path;
  return root + path.substr(prefix.size());
}

// Replaces the file's own root first, and only in the file's own paths: a flag gives a present path.
std::string rebound(const Draft& draft, const Key& key, const std::string& path) {
  const bool is_data = key.root == "data";
  const std::string root = without_trailing_slash(is_data ? draft.config.data.data_root : draft.config.output.log_root);
  const std::string former = without_trailing_slash(is_data ? draft.file_data_root : draft.file_log_root);
  const std::string_view prefix = is_data ? "/data" : "/logs";
  const bool is_of_file = draft.has(key.path) && draft.origin(key.path).layer != Layer::Flag;
  if (is_of_file && !former.empty() && former != "/" && former != prefix && former != root && lies_under(path, former)) {
    return root + path.substr(former.size());
  }
  return rebound(path, prefix, root);
}

void rebind(Draft& draft, const Key& key) {
  if (const auto* text = std::get_if<Accessor<std::string>>(&key.field)) {
    std::string& path = (*text)(draft.config);
    path = rebound(draft, key, path);
  } else if (const auto* optional = std::get_if<Accessor<std::optional<std::string>>>(&key.field)) {
    auto& path = (*optional)(draft.config);
    if (path) path = rebound(draft, key, *path);
  } else if (const auto* list = std::get_if<Accessor<std::vector<std::string>>>(&key.field)) {
    for (std::string& path : (*list)(draft.config)) path = rebound(draft, key, path);
  }
}

void apply_cache(DataConfig& data) {
  if (!data.use_cache) return;
  for (std::string* path : {&data.train_path, &data.val_path}) {
    if (!path->empty()) *path = (std::filesystem::path(*data.use_cache) / std::filesystem::path(*path).filename()).string();
  }
}

std::string absolute_path(const std::string& path) {
  return without_trailing_slash(std::filesystem::absolute(path).lexically_normal().string());
}

template <typename Change>
void change_paths(RunConfig& config, const Change& change) {
  for (const Key& key : schema()) {
    if (key.root.empty()) continue;
    if (const auto* text = std::get_if<Accessor<std::string>>(&key.field)) {
      change((*text)(config));
    } else if (const auto* optional = std::get_if<Accessor<std::optional<std::string>>>(&key.field)) {
      if (auto& path = (*optional)(config)) change(*path);
    } else if (const auto* list = std::get_if<Accessor<std::vector<std::string>>>(&key.field)) {
      for (std::string& path : (*list)(config)) change(path);
    }
  }
}

void make_absolute(std::string& path) {
  if (!path.empty() && path[0] != '/') path = absolute_path(path);
}

}  // namespace

std::string without_trailing_slash(std::string root) {
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  return root;
}

RunConfig with_absolute_paths(RunConfig config) {
  change_paths(config, make_absolute);
  for (std::string* root : {&config.data.data_root, &config.output.log_root}) make_absolute(*root);
  if (config.data.stage) make_absolute(*config.data.stage);
  return config;
}

void rebind_paths(Draft& draft) {
  for (const Key& key : schema()) {
    if (!key.root.empty()) rebind(draft, key);
  }
  apply_cache(draft.config.data);
}

}  // namespace welkin::config
