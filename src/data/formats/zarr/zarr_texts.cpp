// SPDX-License-Identifier: Apache-2.0
// Arrays of texts of fixed length: numpy's <U and |S in version 2, fixed_length_utf32 and null_terminated_bytes in version 3.
// Their bytes are those of an array of characters with one axis more.
#include <charconv>

#include "data/formats/zarr/zarr_metadata.h"

namespace welkin::data {
namespace {

constexpr int64_t kLongestZarrText = 4096;

struct TextType {
  int64_t characters = 0;
  bool wide = false;  // 4 bytes each
  bool big_endian = false;
};

std::optional<TextType> text_type_of_numpy(std::string_view text) {
  if (text.size() < 3 || (text[1] != 'U' && text[1] != 'S')) return std::nullopt;
  TextType type{.characters = 0, .wide = text[1] == 'U', .big_endian = text[0] == '>'};
  const auto [end, code] = std::from_chars(text.data() + 2, text.data() + text.size(), type.characters);
  return code == std::errc{} && end == text.data() + text.size() ? std::optional(type) : std::nullopt;
}

std::optional<TextType> text_type_of_zarr3(const Json& value) {
  if (!value.is_object() || !value.contains("name") || !value.contains("configuration")) return std::nullopt;
  const bool wide = value["name"] == "fixed_length_utf32";
  const Json& settings = value["configuration"];
  if (!wide && value["name"] != "null_terminated_bytes") return std::nullopt;
  if (!settings.is_object() || !settings.contains("length_bytes") || !settings["length_bytes"].is_number_unsigned())
    return std::nullopt;
  const auto bytes = settings["length_bytes"].get<uint64_t>();
  if (bytes > kLongestZarrText * 4) return std::nullopt;
  return TextType{.characters = static_cast<int64_t>(bytes) / (wide ? 4 : 1), .wide = wide};
}

// The axis of characters at the end of a list of sizes.
bool add_characters(Json& object, const char* key, int64_t characters) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_array()) return false;
  object[key].push_back(static_cast<uint64_t>(characters));
  return true;
}

void append_utf8(std::string& text, uint32_t code) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xc0 | (code >> 6)), put(0x80 | (code & 0x3f));
  if (code < 0x10000) return put(0xe0 | (code >> 12)), put(0x80 | ((code >> 6) & 0x3f)), put(0x80 | (code & 0x3f));
  if (code > 0x10ffff) return put('?');
  put(0xf0 | (code >> 18)), put(0x80 | ((code >> 12) & 0x3f)), put(0x80 | ((code >> 6) & 0x3f)), put(0x80 | (code & 0x3f));
}

}  // namespace

std::optional<Json> text_array_metadata(const Json& json) {
  Json changed = json;
  const bool old = json.contains("dtype");
  std::optional<TextType> type;
  if (old && json["dtype"].is_string()) type = text_type_of_numpy(json["dtype"].get<std::string>());
  if (!old && json.contains("data_type")) type = text_type_of_zarr3(json["data_type"]);
  if (!type || type->characters < 1 || type->characters > kLongestZarrText) return std::nullopt;
  if (!add_characters(changed, "shape", type->characters)) return std::nullopt;
  if (old) {
    if (!add_characters(changed, "chunks", type->characters)) return std::nullopt;
    changed["dtype"] = type->wide ? (type->big_endian ? ">u4" : "<u4") : "|u1";
    changed["fill_value"] = 0;
    changed["order"] = "C";  // of texts of one dimension both are the same
    return changed;
  }
  const bool regular =
      changed.contains("chunk_grid") && changed["chunk_grid"].is_object() && changed["chunk_grid"].contains("configuration");
  if (!regular || !add_characters(changed["chunk_grid"]["configuration"], "chunk_shape", type->characters)) return std::nullopt;
  changed["data_type"] = type->wide ? "uint32" : "uint8";
  changed["fill_value"] = 0;
  changed.erase("dimension_names");
  return changed;
}

std::vector<std::string> texts_of(const StoredArray& characters) {
  const Extents& shape = characters.facts().shape;
  const std::vector<double> codes = characters.read_doubles();
  const bool bytes = characters.facts().dtype == Dtype::U8;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < shape[0]; ++i) {
    std::string text;
    for (int64_t j = 0; j < shape[1]; ++j) {
      const auto code = static_cast<uint32_t>(codes[static_cast<size_t>(i * shape[1] + j)]);
      if (code == 0) break;
      bytes ? text.push_back(static_cast<char>(static_cast<unsigned char>(code))) : append_utf8(text, code);
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace welkin::data
