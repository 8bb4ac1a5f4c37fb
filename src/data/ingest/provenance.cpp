// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/provenance.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"

namespace welkin::data::ingest {
namespace {

constexpr size_t kLongestLicence = 16384;
constexpr uint64_t kLongestSource = 1 << 20;

std::string_view derivation_name(Derivation derivation) {
  switch (derivation) {
    case Derivation::Value:
      return "value";
    case Derivation::Sine:
      return "sine";
    case Derivation::Cosine:
      return "cosine";
    case Derivation::Mask:
      break;
  }
  return "mask";
}

bool speaks_of_licence(const std::string& item) {
  return item.find("icence") != std::string::npos || item.find("icense") != std::string::npos ||
         item.find("ttribution") != std::string::npos;
}

// The items of a Markdown list ("- ..." and the lines that continue it) that speak of a licence.
std::string licence_items(const std::string& markdown) {
  std::istringstream lines(markdown);
  std::string item, kept;
  const auto keep = [&] {
    if (item.starts_with("- ") && !item.starts_with("- `") && speaks_of_licence(item)) kept += item;
    item.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    const bool continues = line.starts_with("  ");
    if (!continues) keep();
    item += line + "\n";
  }
  keep();
  return kept;
}

}  // namespace

std::string provenance_json(const std::vector<InputFile>& files, const std::vector<Channel>& channels, const std::string& reader,
                            const std::string& command, const std::vector<std::string>& notes) {
  nlohmann::ordered_json json;
  json["made_by"] = "welkin data ingest";
  json["reader"] = reader;
  json["command"] = command;
  for (const InputFile& file : files) {
    json["sources"].push_back({{"name", file.path.filename().string()},
                               {"format", name_of(file.format)},
                               {"bytes", file.bytes},
                               {"xxh3_64", hex_digits(file.xxh3)}});
  }
  for (const Channel& channel : channels) {
    json["channels"].push_back(
        {{"name", channel.name}, {"units", channel.units}, {"made_as", derivation_name(channel.derivation)}});
  }
  json["notes"] = notes;
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);  // names in files need not be UTF-8
}

std::string licence_text(const std::vector<InputFile>& files, const std::string& given) {
  std::string text = given.empty() ? "" : given + "\n";
  std::set<std::filesystem::path> folders;
  for (const InputFile& file : files) folders.insert(std::filesystem::absolute(file.path).parent_path());
  for (const auto& folder : folders) {
    const auto source = folder / "SOURCE.md";
    std::error_code ignored;
    if (std::filesystem::is_regular_file(source, ignored)) text += licence_items(read_file(source, kLongestSource));
  }
  if (text.size() > kLongestLicence) text.resize(kLongestLicence);
  return text;
}

}  // namespace welkin::data::ingest
