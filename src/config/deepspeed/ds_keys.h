// SPDX-License-Identifier: Apache-2.0
// The keys of DeepSpeed's JSON as a table, with the key of ours that each sets. Names are DeepSpeed's
// (deepspeed.ai/docs/config-json), joined by dots.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/yaml/yaml_document.h"

namespace welkin::config {

enum class DsRule {
  Key,       // sets our key `target`
  Combined,  // sets our keys together with others of its section (ds_config.cpp, ds_optimizer.cpp), or is checked
  NoEffect,  // accepted, and named once in the log
  OnlyOff    // accepted where it is off; else an error, since its feature does not exist here
};

struct DsValue {
  std::string text = {};     // as --set takes it; empty where there is nothing to set
  std::string problem = {};  // "wants a whole number"; empty where there is none
};
using DsConvert = DsValue (*)(const YamlNode& node);

struct DsKey {
  std::string_view name;
  DsRule rule = DsRule::NoEffect;
  std::string_view target = "";   // Key: dotted path of ours; Combined: our keys, for the documentation
  std::string_view meaning = "";  // for people; the remedy for OnlyOff
  DsConvert convert = nullptr;    // Key: from the node to the setting's text; null takes the text as it stands
  std::string_view off = "";      // OnlyOff: one more text that is off
};

// All rows, in the order of the documentation.
const std::vector<DsKey>& ds_keys();
const DsKey* find_ds_key(std::string_view name);  // null when unknown
bool is_ds_section(std::string_view name);        // some name goes on after it and a dot

// The table of docs/reference/ds_config.md.
std::string ds_markdown();

// A whole number in [0, 2^53]; JSON writes 5e8 for one.
DsValue ds_whole(const YamlNode& node);
DsValue ds_number(const YamlNode& node);
DsValue ds_switch(const YamlNode& node);

// Rows of the sections, by file.
std::vector<DsKey> ds_zero_keys();
std::vector<DsKey> ds_optimizer_keys();

}  // namespace welkin::config
