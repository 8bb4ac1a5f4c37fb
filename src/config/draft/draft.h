// SPDX-License-Identifier: Apache-2.0
// A configuration while it is being put together: the values so far, the origin of each, and the problems. Filled by layers
// (default < file < preset < flag), then completed (config/resolve) and checked (config/validate).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/draft/origin.h"
#include "config/flags/command_line.h"
#include "config/schema/problems.h"
#include "config/schema/run_config.h"
#include "config/yaml/yaml_document.h"

namespace welkin::config {

struct Draft {
  // The value with the higher rank wins. An entry that a preset inherits ranks below its own ones, by its distance.
  struct Given {
    Origin origin;
    int64_t rank = 0;
  };

  RunConfig config;
  // Roots that the file names: a saved run's paths lie below them.
  std::string file_data_root, file_log_root;
  std::map<std::string, Given, std::less<>> given;  // by path; keys at their default are absent
  std::vector<std::string> names;  // flat names as the file's preset writes them, in the order of iteration; leaves only
  std::vector<std::string> notes;
  Problems problems;
  // Paths of values that are wrong by themselves. `config` does not hold the given value, so further rules do not report on
  // it.
  std::set<std::string, std::less<>> rejected;

  // Texts that name none of a key's values, by path; the field keeps its value. validate_rows() reports those that
  // no later entry replaces.
  std::map<std::string, std::string, std::less<>> misnamed;

  bool has(std::string_view path) const { return given.find(path) != given.end(); }
  bool is_sound(std::initializer_list<std::string_view> paths) const;  // none of them is rejected
  int64_t rank(std::string_view path) const;                           // 0 for a default
  Origin origin(std::string_view path) const;
  std::string place(std::string_view path) const;  // the origin's text; empty for a default
  std::string show(std::string_view path) const;   // "num_heads=7 (config/ViT.yaml:12)"
  // Marks a value that resolve() computed: "from <what>".
  void derived(std::string_view path, std::string_view from);
};

// Applies a mapping of the file: the file's own level or a preset. `prefix` is empty, or the component that the mapping stands
// for; `outer` is the number of merge keys that it was itself inherited over.
void apply_mapping(Draft& draft, const YamlDocument& document, YamlId mapping, Layer layer, const std::string& prefix = "",
                   int64_t outer = 0);

// Applies the command line's settings, in order.
void apply_settings(Draft& draft, const std::vector<Setting>& settings);

}  // namespace welkin::config
