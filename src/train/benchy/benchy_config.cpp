// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "config/yaml/yaml_document.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "train/benchy/benchy.h"

namespace welkin::train {
namespace {

using config::YamlDocument;
using config::YamlEntry;
using config::YamlKind;
using config::YamlNode;

constexpr uint64_t kLargestFile = uint64_t{1} << 20;

// One section of the file; every key must be taken.
class SectionReader {
 public:
  SectionReader(const YamlDocument& document, const YamlEntry& section)
      : document_(document), name_(section.key), node_(document.at(section.value)) {
    if (node_.kind != YamlKind::Mapping) refuse("a section is a mapping", section.mark.line, "Write it as the others");
  }

  void read(const char* key, bool& value) { value = take(key, YamlKind::Bool, "true or false").boolean; }
  void read(const char* key, std::string& value) { value = take(key, YamlKind::String, "a text").text; }
  void read(const char* key, std::string& value, const std::vector<std::string>& choices) {
    read(key, value);
    if (std::ranges::find(choices, value) != choices.end()) return;
    refuse(cat("unknown value: ", key, "=", value), node_.mark.line, cat("Choose one of: ", join(choices, ", ")));
  }
  void read(const char* key, int64_t& value, int64_t least) {
    const YamlNode& node = take(key, YamlKind::Int, "a whole number");
    value = node.integer;
    if (value < least) refuse(cat("too small a number: ", key, "=", value), node.mark.line, cat("Give at least ", least));
  }

  void finish() const {
    for (const YamlEntry& entry : node_.entries) {
      if (taken_.count(entry.key) == 0) {
        refuse(cat("benchy has no such key: ", entry.key), entry.mark.line, "Take it out");
      }
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what, int64_t line, const std::string& remedy) const {
    throw ConfigError("benchy", cat(document_.name, ":", line, ": ", what, ", section=", name_), remedy);
  }

  const YamlNode& take(const char* key, YamlKind kind, const char* what) {
    taken_[key] = true;
    const YamlEntry* entry = config::find_entry(node_, key);
    if (entry == nullptr) {
      refuse(cat("a section replaces the defaults as a whole, and this one leaves out ", key), node_.mark.line,
             "Give all keys of the section");
    }
    const YamlNode& node = document_.at(entry->value);
    if (node.kind != kind) refuse(cat(key, " is ", what, ": found ", config::kind_name(node.kind)), node.mark.line, "Correct it");
    return node;
  }

  const YamlDocument& document_;
  std::string name_;
  const YamlNode& node_;
  std::map<std::string, bool> taken_;
};

void read_global(SectionReader section, BenchyConfig& config) {
  section.read("report_freq", config.report_freq, 1);
  section.read("exit_after_tests", config.exit_after_tests);
  section.read("profiler_mode", config.profiler_mode, {"single", "all", "none"});
  section.read("output_filename", config.output_filename);
  section.read("output_dir", config.output_dir);
  section.read("use_distributed_barrier", config.use_distributed_barrier);
  section.finish();
}

void read_section(SectionReader section, BenchySection& target) {
  section.read("run_benchmark", target.run_benchmark);
  section.read("nbatches", target.nbatches, 1);
  section.read("ntrials", target.ntrials, 1);
  section.read("nwarmup", target.nwarmup, 0);
  section.finish();
}

// Has errors of its own for a file without sections: those of parse_yaml() are about presets.
YamlDocument sections_of(const std::string& path) {
  YamlDocument document = config::parse_yaml_value(read_file(path, kLargestFile), path);
  const YamlNode& top = document.top();
  if (top.kind == YamlKind::Mapping) return document;
  const bool is_empty = top.kind == YamlKind::String && top.text.empty();
  throw ConfigError("benchy",
                    cat("this file holds no sections: BENCHY_CONFIG_FILE=", path,
                        ", found=", is_empty ? "nothing" : config::kind_name(top.kind)),
                    "Give at least one of global, IO, synthetic and full with all its keys, or unset BENCHY_CONFIG_FILE");
}

}  // namespace

BenchyConfig read_benchy_config(const std::string& path) {
  BenchyConfig config;
  if (path.empty()) return config;
  const YamlDocument document = sections_of(path);
  config.file = path;
  for (const YamlEntry& entry : document.top().entries) {
    SectionReader section(document, entry);
    if (entry.key == "global") {
      read_global(std::move(section), config);
    } else if (entry.key == "IO") {
      read_section(std::move(section), config.sections[0]);
    } else if (entry.key == "synthetic") {
      read_section(std::move(section), config.sections[1]);
    } else if (entry.key == "full") {
      read_section(std::move(section), config.sections[2]);
    } else {
      throw ConfigError("benchy", cat(path, ":", entry.mark.line, ": benchy has no such section: ", entry.key),
                        "Choose one of: global, IO, synthetic, full");
    }
  }
  return config;
}

}  // namespace welkin::train
