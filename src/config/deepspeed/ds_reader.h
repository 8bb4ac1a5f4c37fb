// SPDX-License-Identifier: Apache-2.0
// One pass over the JSON: every key against the table, and the values by name.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "config/deepspeed/ds_config.h"
#include "config/deepspeed/ds_keys.h"
#include "config/yaml/yaml_document.h"

namespace welkin::config {

class DsReader {
 public:
  DsReader(const YamlDocument& document, DsConfig& config, Problems& problems)
      : document_(document), config_(config), problems_(problems) {}

  void read() { walk("", document_.root); }

  // The value of a key of the table; null where it is absent, null or "auto".
  const YamlNode* find(std::string_view name) const;
  bool is_auto(std::string_view name) const;
  const YamlDocument& document() const { return document_; }

  // The setting's text by `convert`; empty where the key has no value, or a bad one, which is reported as a problem.
  std::string text(std::string_view name, DsConvert convert);
  void set(std::string_view path, const std::string& text, std::string_view name);
  void problem(std::string_view name, std::string_view what, std::string_view remedy);
  std::string place(std::string_view name) const;

 private:
  void walk(const std::string& prefix, YamlId mapping);
  void visit(const std::string& name, const YamlEntry& entry);
  void apply(const DsKey& key, const YamlNode& node);
  bool is_off(const DsKey& key, const YamlNode& node) const;
  void unknown(const std::string& name);

  const YamlDocument& document_;
  DsConfig& config_;
  Problems& problems_;
  std::map<std::string, int64_t, std::less<>> lines_;
  std::map<std::string, YamlId, std::less<>> values_;
};

// Sections whose keys act together.
void read_ds_precision(DsReader& reader, DsConfig& config);
void read_ds_offload(DsReader& reader);
void read_ds_optimizer(DsReader& reader);
void read_ds_scheduler(DsReader& reader, DsConfig& config);
DsWhole read_ds_whole(DsReader& reader, std::string_view name, int64_t least);

}  // namespace welkin::config
