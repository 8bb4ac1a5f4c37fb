// SPDX-License-Identifier: Apache-2.0
// A folder of Zarr arrays and groups, version 2 or 3.
#include <algorithm>
#include <bit>
#include <cmath>

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

// The 8 bytes of a little-endian double.
std::optional<double> number_of_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() != 12 || text[11] != '=') return std::nullopt;
  uint64_t bits = 0;
  for (size_t i = 0; i < 11; ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = i < 10 ? (bits << 6) | digit : (bits << 4) | (digit >> 2);  // 11 digits of 6 bits, the last two of which are none
  }
  return std::bit_cast<double>(__builtin_bswap64(bits));
}

class ZarrOpener {
 public:
  ZarrOpener(const fs::path& root, std::shared_ptr<ChunkCache> cache)
      : file_{.path = root, .format = "", .arrays = {}, .not_numbers = {}, .attributes = {}}, cache_(std::move(cache)) {}

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
      check_zarr2_group(folder / ".zgroup");
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

  static void check_zarr2_group(const fs::path& path) {
    const Json json = parse_json(metadata_text(path), path.string());
    if (json_member(json, "zarr_format", path.string()) != 2) refuse_json(path.string(), "zarr_format", "not 2");
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
    ArrayFacts facts{.source = name.empty() ? folder.string() : cat(file_.path.string(), ", dataset=", name), .name = name};
    try {
      ZarrArray array = parse(facts.source);
      add_fill_value(array);
      file_.format = cat("Zarr ", array.version);
      file_.attributes[name] = array.attributes;
      file_.arrays[name] = make_zarr_array(folder, std::move(array), std::move(facts), cache_);
    } catch (const ZarrRefusal& refusal) {
      file_.not_numbers[name] = refusal.reason;
      add_texts(folder, name);
    }
  }

  // Adds an array of texts of one dimension, such as names of channels. Faults in it are ignored: numbers do not need it.
  void add_texts(const fs::path& folder, const std::string& name) {
    constexpr int64_t kMostNames = 65536, kMostCharacters = int64_t{1} << 22;
    const bool old = is_file(folder / ".zarray");
    const fs::path path = folder / (old ? ".zarray" : "zarr.json");
    const auto parse = [&](const Json& json) {
      return old ? parse_zarr2_array(json.dump(), {}, path.string()) : parse_zarr3_array(json, path.string());
    };
    try {
      const Json own = parse_json(metadata_text(path), path.string());
      if (const auto texts = long_text_metadata(own)) {
        const ZarrArray array = parse(texts->metadata);
        if (array.shape.size() != 1 || array.shape[0] > kMostNames || array.shard) return;
        file_.attributes[name] = old ? zarr2_attributes(folder) : array.attributes;
        file_.text_arrays[name] = long_texts_of(folder, array, texts->fill);
        return;
      }
      const auto json = text_array_metadata(own);
      if (!json) return;
      ArrayFacts facts{.source = path.string(), .name = name};
      ZarrArray array = parse(*json);
      if (array.shape.size() != 2 || array.shape[0] > kMostNames || array.shape[0] * array.shape[1] > kMostCharacters) return;
      array.is_text = true;
      array.axes.clear();
      file_.attributes[name] = old ? zarr2_attributes(folder) : array.attributes;
      array.attributes.clear();
      file_.text_arrays[name] = texts_of(*make_zarr_array(folder, std::move(array), std::move(facts)));
    } catch (const ZarrRefusal&) {
    } catch (const DataError&) {
    }
  }

  // xarray stores _FillValue as the fill_value of version 2, and as base64 of a double in version 3. Arrays of others have a
  // fill_value that stands for no missing value, as those that welkin data convert writes: of these only NaN does.
  void add_fill_value(ZarrArray& array) const {
    const auto root = file_.attributes.find("");
    const bool ours = root != file_.attributes.end() && root->second.contains("converted_by");
    const bool is_named = array.version == 2 && array.attributes.contains("_ARRAY_DIMENSIONS");
    const bool counts = ours ? array.version == 2 && array.fill && std::isnan(*array.fill) : is_named && array.fill.has_value();
    const auto given = array.attributes.find("_FillValue");
    if (given == array.attributes.end()) {
      if (counts) array.attributes["_FillValue"] = std::vector<double>{*array.fill};
      return;
    }
    const auto* texts = std::get_if<std::vector<std::string>>(&given->second);
    const auto value = texts == nullptr || texts->size() != 1 ? std::nullopt : number_of_base64(texts->front());
    if (value) given->second = std::vector<double>{*value};
  }

  ArrayFile file_;
  std::shared_ptr<ChunkCache> cache_;
};

}  // namespace

ArrayFile open_zarr_arrays(const std::filesystem::path& path) { return open_zarr_arrays(path, nullptr); }

ArrayFile open_zarr_arrays(const std::filesystem::path& path, std::shared_ptr<ChunkCache> cache) {
  return ZarrOpener(path, std::move(cache)).open();
}

}  // namespace welkin::data
