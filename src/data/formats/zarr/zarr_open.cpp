// SPDX-License-Identifier: Apache-2.0
// A folder of Zarr arrays and groups, version 2 or 3.
#include <algorithm>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/formats/formats.h"
#include "data/formats/zarr/zarr_array.h"

namespace welkin::data {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestZarrGroup = 16;
constexpr size_t kMostZarrArrays = 10'000;

std::string metadata_text(const fs::path& path) { return read_file(path, kMaxZarrMetadataBytes); }

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

Attributes zarr2_attributes(const fs::path& folder) {
  const fs::path path = folder / ".zattrs";
  return is_file(path) ? json_attributes(parse_json(metadata_text(path), path.string())) : Attributes{};
}

class ZarrOpener {
 public:
  explicit ZarrOpener(const fs::path& root)
      : file_{.path = root, .format = "", .arrays = {}, .not_numbers = {}, .attributes = {}} {}

  ArrayFile open() {
    visit(file_.path, "", 0);
    return std::move(file_);
  }

 private:
  // Links to folders are not followed inside: they may form a loop.
  void visit(const fs::path& folder, const std::string& name, int depth) {
    bool is_group = false;
    if (is_file(folder / "zarr.json")) {
      is_group = visit_zarr3(folder, name);
    } else if (is_file(folder / ".zarray")) {
      add_array(folder, name, [&](const std::string& source) {
        return parse_zarr2_array(metadata_text(folder / ".zarray"), zarr2_attributes(folder), source);
      });
    } else if (is_file(folder / ".zgroup")) {
      is_group = true;
      file_.format = "Zarr 2";
      file_.attributes[name] = zarr2_attributes(folder);
    }
    if (!is_group) return;
    if (depth == kDeepestZarrGroup) {
      throw DataError("data", cat("groups in groups: path=", folder.string(), ", most=", kDeepestZarrGroup), "Check the folder");
    }
    std::vector<std::string> children;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory() && !entry.is_symlink()) children.push_back(entry.path().filename().string());
    }
    std::ranges::sort(children);
    for (const std::string& child : children) visit(folder / child, name.empty() ? child : cat(name, "/", child), depth + 1);
  }

  bool visit_zarr3(const fs::path& folder, const std::string& name) {
    const fs::path path = folder / "zarr.json";
    const Json json = parse_json(metadata_text(path), path.string());
    const std::string type = json_text(json_member(json, "node_type", path.string()), "node_type", path.string());
    if (type == "group") {
      file_.format = "Zarr 3";
      if (json.contains("attributes")) file_.attributes[name] = json_attributes(json["attributes"]);
      return true;
    }
    if (type != "array") refuse_json(path.string(), "node_type", "neither group nor array");
    add_array(folder, name, [&](const std::string& source) { return parse_zarr3_array(json, source); });
    return false;
  }

  template <typename Parse>
  void add_array(const fs::path& folder, const std::string& name, const Parse& parse) {
    if (file_.arrays.size() == kMostZarrArrays)
      throw DataError("data", cat("more than 10000 arrays: path=", file_.path.string()), "Check the folder");
    ArrayFacts facts{.source = name.empty() ? folder.string() : cat(file_.path.string(), ", dataset=", name),
                     .name = name,
                     .shape = {},
                     .chunk = {},
                     .codecs = {},
                     .axes = {},
                     .packing = {}};
    try {
      ZarrArray array = parse(facts.source);
      file_.format = cat("Zarr ", array.version);
      file_.attributes[name] = array.attributes;
      file_.arrays[name] = make_zarr_array(folder, std::move(array), std::move(facts));
    } catch (const ZarrRefusal& refusal) {
      file_.not_numbers[name] = refusal.reason;
    }
  }

  ArrayFile file_;
};

}  // namespace

ArrayFile open_zarr_arrays(const std::filesystem::path& path) { return ZarrOpener(path).open(); }

}  // namespace welkin::data
