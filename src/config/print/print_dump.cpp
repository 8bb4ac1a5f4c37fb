// SPDX-License-Identifier: Apache-2.0
// The tutorials' dump of a configuration, spec sections 2, 6a and 8.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "config/print/print.h"
#include "config/schema/key.h"
#include "config/schema/value.h"
#include "core/text.h"

namespace welkin::config {
namespace {

// The tutorials' two maps, which Python prints as one dict.
std::string_view map_of(std::string_view name) {
  for (const std::string_view map : {"lr_schedule", "weight_init"}) {
    if (name.size() > map.size() && name.starts_with(map) && name[map.size()] == '.') return map;
  }
  return {};
}

// Python keeps an integer as such where a float is allowed: lambda_rho 0.
std::string dumped(const Resolved& resolved, const Key& key, bool nested) {
  std::string text = python_text(resolved.config, key, nested);
  const bool was_integer = resolved.origins.at(std::string(key.path)).was_integer;
  if (was_integer && text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string dict_text(const Resolved& resolved, std::string_view map) {
  std::vector<std::string> items;
  for (const std::string& name : resolved.file_order) {
    const Key* key = find_key(name);
    if (key == nullptr || map_of(name) != map) continue;
    items.push_back(cat("'", name.substr(map.size() + 1), "': ", dumped(resolved, *key, true)));
  }
  return cat("{", join(items, ", "), "}");
}

std::string_view last_part(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

class Dump {
 public:
  explicit Dump(const Resolved& resolved) : resolved_(resolved) {}

  void add_file_entries() {
    for (const std::string& name : resolved_.file_order) {
      const std::string_view map = map_of(name);
      const Key* key = find_key(name);
      if (key == nullptr) continue;
      add(map.empty() ? last_part(name) : map, map.empty() ? dumped(resolved_, *key, false) : dict_text(resolved_, map));
    }
  }

  void add_precision() {
    const AmpMode mode = resolved_.config.precision.amp_mode;
    if (resolved_.config.tutorial == Tutorial::Sc21) return add("enable_amp", mode != AmpMode::None ? "True" : "False");
    add("amp_enabled", mode != AmpMode::None ? "True" : "False");
    add("amp_dtype", mode == AmpMode::Fp16 ? "torch.float16" : mode == AmpMode::Bf16 ? "torch.bfloat16" : "torch.float32");
  }

  // The switches that the tutorial's programs write into the configuration.
  void add_switches() {
    for (const std::string_view name : {"enable_apex", "enable_fused", "enable_jit", "enable_benchy"}) {
      const Key& key = *find_key(name);
      if ((key.flag_tutorials & bit_of(resolved_.config.tutorial)) != 0) add(name, python_text(resolved_.config, key));
    }
  }

  void add_parallel() {
    const ParallelConfig& parallel = resolved_.config.parallel;
    if (resolved_.config.output.folder_rule != FolderRule::Mp) return;
    if (resolved_.config.tutorial == Tutorial::Sc23) {
      add("model_parallel_sizes", cat("[", parallel.tensor_parallel, ", ", parallel.col_parallel_size, "]"));
      add("model_parallel_names", "['row_matmul', 'col_matmul']");
    } else {
      add("tp", std::to_string(parallel.tensor_parallel));
      add("cp", std::to_string(parallel.context_parallel));
      if (parallel.spatial.size() > 1) add("spatial", text_of(parallel.spatial));
      if (parallel.pipeline_parallel > 1) add("pp", std::to_string(parallel.pipeline_parallel));
      add("order", parallel.parallel_order);
    }
  }

  // The rules that are not ours, by which the numbers below are to be read.
  void add_rules() {
    const RunConfig defaults;
    const bool compat = resolved_.config.loop.compat.has_value();
    for (const Key& key : schema()) {
      const bool chosen_by_compat = key.path == "data.augment" || key.path == "schedule.schedule";
      const bool is_rule = key.pinned || key.path == "loop.deterministic" || (compat && chosen_by_compat);
      if (!is_rule || value_text(resolved_.config, key) == value_text(defaults, key)) continue;
      add(last_part(key.path), python_text(resolved_.config, key));
    }
  }

  std::vector<std::string> take() { return std::move(lines_); }

 private:
  void add(std::string_view name, std::string_view value) {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return;
    names_.emplace_back(name);
    lines_.push_back(cat(name, " ", value));
  }

  const Resolved& resolved_;
  std::vector<std::string> names_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> dump_lines(const Resolved& resolved) {
  Dump dump(resolved);
  dump.add_file_entries();
  dump.add_precision();
  dump.add_switches();
  dump.add_parallel();
  dump.add_rules();
  return dump.take();
}

}  // namespace welkin::config
