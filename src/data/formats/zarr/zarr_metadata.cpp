// SPDX-License-Identifier: Apache-2.0
#include "data/formats/zarr/zarr_metadata.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <numeric>

#include "core/checked.h"
#include "core/text.h"
#include "data/formats/sidecar.h"
#include "data/storage/stored_values.h"

namespace welkin::data {
namespace {

constexpr int64_t kMostTypeBytes = 8;

NamedType zarr_type(const Json& value, std::string_view key, std::string_view source) {
  if (!value.is_string()) throw ZarrRefusal{cat("dtype ", value.dump().substr(0, 60))};
  const std::string text = json_text(value, key, source);
  const auto type = named_type(text);
  if (!type) throw ZarrRefusal{cat("dtype ", text.substr(0, 60))};
  return *type;
}

double bits_as_double(std::string_view hex, Dtype dtype, std::string_view source) {
  uint64_t bits = 0;
  const auto [end, code] = std::from_chars(hex.data(), hex.data() + hex.size(), bits, 16);
  if (code != std::errc{} || end != hex.data() + hex.size()) refuse_json(source, "fill_value", "a broken hexadecimal number");
  switch (dtype) {
    case Dtype::F64:
      return std::bit_cast<double>(bits);
    case Dtype::F32:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case Dtype::F16:
      return half_to_double(static_cast<uint16_t>(bits));
    case Dtype::BF16:
      return bfloat16_to_double(static_cast<uint16_t>(bits));
    default:
      refuse_json(source, "fill_value", "hexadecimal for a type that is no float");
  }
}

std::optional<double> fill_value(const Json& value, Dtype dtype, std::string_view source) {
  if (value.is_null()) return std::nullopt;
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  const std::string text = json_text(value, "fill_value", source);
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (text.starts_with("0x")) return bits_as_double(std::string_view(text).substr(2), dtype, source);
  refuse_json(source, "fill_value", "it is no number");
}

// The width of a shuffle: from the configuration, else that of the array's type.
Codec with_width(Codec codec, const Json& settings, const char* key, Dtype dtype, std::string_view source) {
  const bool given = settings.contains(key) && settings[key].is_number();
  const int64_t width = given ? json_integer(settings[key], key, source) : static_cast<int64_t>(dtype_bytes(dtype));
  if (width < 1 || width > 256 * kMostTypeBytes) refuse_json(source, key, "a width that no number has");
  codec.width = static_cast<size_t>(width);
  return codec;
}

// Codecs that lose digits when they encode, and do nothing when they decode.
bool is_rounding(std::string_view id, const Json& settings) {
  if (id.starts_with("numcodecs.")) id.remove_prefix(std::string_view("numcodecs.").size());
  const bool keeps_type = !settings.contains("astype") || settings["astype"] == settings.value("dtype", Json());
  return id == "bitround" || (id == "quantize" && keeps_type);
}

Codec codec_of(std::string_view id, const Json& settings, Dtype dtype, std::string_view source) {
  if (id.starts_with("numcodecs.")) id.remove_prefix(std::string_view("numcodecs.").size());
  if (id == "zlib") return {.kind = CodecKind::Zlib};
  if (id == "gzip") return {.kind = CodecKind::Gzip};
  if (id == "zstd") return {.kind = CodecKind::Zstd};
  if (id == "lz4") return {.kind = CodecKind::Lz4};
  if (id == "crc32c") return {.kind = CodecKind::Crc32c};
  if (id == "shuffle") return with_width({.kind = CodecKind::Shuffle}, settings, "elementsize", dtype, source);
  if (id != "blosc") throw ZarrRefusal{cat("codec ", id.substr(0, 60))};
  Codec blosc = with_width({.kind = CodecKind::Blosc}, settings, "typesize", dtype, source);
  if (settings.contains("cname")) blosc.compressor = json_text(settings["cname"], "cname", source);
  return blosc;
}

void check_shape(const ZarrArray& array, std::string_view source) {
  if (array.chunk.size() != array.shape.size()) refuse_json(source, "chunks", "another number of axes than shape");
  checked_product(array.shape, [&] { refuse_json(source, "shape", "a shape that no machine can hold"); });
}

// Version 3: {"name": ..., "configuration": {...}}, or the name alone.
struct NamedSettings {
  std::string name;
  Json settings;
};

NamedSettings named_settings(const Json& value, const char* key, std::string_view source) {
  if (value.is_string()) return {value.get<std::string>(), Json::object()};
  if (!value.is_object()) refuse_json(source, key, "neither a name nor an object");
  NamedSettings result{json_text(json_member(value, "name", source), key, source), Json::object()};
  if (value.contains("configuration")) result.settings = value["configuration"];
  if (!result.settings.is_object()) refuse_json(source, key, "a configuration that is no object");
  return result;
}

std::vector<size_t> transposition(const Json& settings, size_t rank, std::string_view source) {
  const Json& order = json_member(settings, "order", source);
  std::vector<size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), size_t{0});
  if (order == "F") return {axes.rbegin(), axes.rend()};
  if (order == "C") return axes;
  std::vector<size_t> result;
  for (const int64_t axis : json_extents(order, "order", source, 0)) result.push_back(static_cast<size_t>(axis));
  if (!std::is_permutation(result.begin(), result.end(), axes.begin(), axes.end()))
    refuse_json(source, "order", "no order of the axes");
  return result;
}

// Two transpositions in a row are one.
std::vector<size_t> composed(const std::vector<size_t>& first, const std::vector<size_t>& second) {
  if (first.empty()) return second;
  std::vector<size_t> result;
  for (const size_t axis : second) result.push_back(first[axis]);
  return result;
}

bool is_big_endian(const Json& settings, std::string_view source) {
  if (!settings.contains("endian") || settings["endian"].is_null()) return false;
  const std::string text = json_text(settings["endian"], "endian", source);
  if (text != "little" && text != "big") refuse_json(source, "endian", "neither little nor big");
  return text == "big";
}

// Array to array codecs, `bytes`, then bytes to bytes.
ZarrEncoding parse_encoding(const Json& list, const ZarrArray& array, std::string_view source) {
  if (!list.is_array() || list.size() > 16) refuse_json(source, "codecs", "it is no list of codecs");
  ZarrEncoding encoding;
  bool has_bytes = false;
  for (const Json& item : list) {
    const auto [name, settings] = named_settings(item, "codecs", source);
    if (name == "sharding_indexed") throw ZarrRefusal{"codec sharding_indexed inside other codecs"};
    if (name == "bytes") {
      if (has_bytes) refuse_json(source, "codecs", "bytes occurs twice");
      has_bytes = true;
      encoding.big_endian = is_big_endian(settings, source);
    } else if (name == "transpose" && !has_bytes) {
      encoding.order = composed(encoding.order, transposition(settings, array.shape.size(), source));
    } else if (!has_bytes && is_rounding(name, settings)) {
      continue;
    } else if (has_bytes) {
      encoding.codecs.push_back(codec_of(name, settings, array.dtype, source));
    } else {
      throw ZarrRefusal{cat("codec ", name.substr(0, 60))};
    }
  }
  if (!has_bytes) refuse_json(source, "codecs", "bytes is missing");
  return encoding;
}

// The index of a shard must have a size that is known in advance: bytes, and a checksum perhaps.
void parse_index(const Json& settings, ZarrShard& shard, std::string_view source) {
  const ZarrArray plain;
  const ZarrEncoding index = parse_encoding(json_member(settings, "index_codecs", source), plain, source);
  const bool fits = index.order.empty() && !index.big_endian && index.codecs.size() <= 1 &&
                    (index.codecs.empty() || index.codecs[0].kind == CodecKind::Crc32c);
  if (!fits) throw ZarrRefusal{"an index of shards that is compressed"};
  shard.index_has_checksum = !index.codecs.empty();
  if (!settings.contains("index_location")) return;
  const std::string location = json_text(settings["index_location"], "index_location", source);
  if (location != "start" && location != "end") refuse_json(source, "index_location", "neither start nor end");
  shard.index_at_start = location == "start";
}

void parse_codecs(const Json& list, ZarrArray& array, std::string_view source) {
  const bool sharded =
      list.is_array() && list.size() == 1 && named_settings(list[0], "codecs", source).name == "sharding_indexed";
  if (!sharded) {
    array.encoding = parse_encoding(list, array, source);
    return;
  }
  const Json settings = named_settings(list[0], "codecs", source).settings;
  ZarrShard shard;
  shard.inner_chunk = json_extents(json_member(settings, "chunk_shape", source), "chunk_shape", source, 1);
  if (shard.inner_chunk.size() != array.chunk.size()) refuse_json(source, "chunk_shape", "another number of axes than shape");
  for (size_t d = 0; d < array.chunk.size(); ++d) {
    if (array.chunk[d] % shard.inner_chunk[d] != 0) refuse_json(source, "chunk_shape", "it does not divide the shard");
  }
  shard.inner = parse_encoding(json_member(settings, "codecs", source), array, source);
  parse_index(settings, shard, source);
  array.shard = std::move(shard);
}

}  // namespace

std::string ZarrArray::chunk_file(const Extents& place) const {
  const Extents index(place.begin(), place.end() - (is_text ? 1 : 0));
  std::string numbers = index.empty() && !has_prefix ? "0" : join(index, std::string(1, separator));
  if (!has_prefix) return numbers;
  return index.empty() ? "c" : cat("c", separator, numbers);
}

size_t zarr_chunk_bytes(const Extents& chunk, Dtype dtype, std::string_view source) {
  const auto too_big = [&] { refuse_json(source, "chunks", cat("a chunk of more than ", kMostDecodedBytes, " bytes")); };
  const int64_t bytes = checked_mul(checked_product(chunk, too_big), static_cast<int64_t>(dtype_bytes(dtype)), too_big);
  if (static_cast<uint64_t>(bytes) > kMostDecodedBytes) too_big();
  return static_cast<size_t>(bytes);
}

ZarrArray parse_zarr2_array(std::string_view text, const Attributes& attributes, std::string_view source) {
  const Json json = parse_json(text, source);
  ZarrArray array;
  array.version = 2;
  array.shape = json_extents(json_member(json, "shape", source), "shape", source, 0);
  array.chunk = json_extents(json_member(json, "chunks", source), "chunks", source, 1);
  check_shape(array, source);
  const NamedType type = zarr_type(json_member(json, "dtype", source), "dtype", source);
  array.dtype = type.dtype;
  array.encoding.big_endian = type.big_endian;
  if (json.contains("fill_value")) array.fill = fill_value(json["fill_value"], array.dtype, source);
  const std::string order = json_text(json_member(json, "order", source), "order", source);
  if (order != "C" && order != "F") refuse_json(source, "order", "neither C nor F");
  if (order == "F") array.encoding.order = transposition({{"order", "F"}}, array.shape.size(), source);
  if (json.contains("filters") && !json["filters"].is_null()) {
    if (!json["filters"].is_array() || json["filters"].size() > 16) refuse_json(source, "filters", "it is no list");
    for (const Json& filter : json["filters"]) {
      if (!filter.is_object()) refuse_json(source, "filters", "a filter that is no object");
      if (is_rounding(json_text(json_member(filter, "id", source), "id", source), filter)) continue;
      array.encoding.codecs.push_back(
          codec_of(json_text(json_member(filter, "id", source), "id", source), filter, array.dtype, source));
    }
  }
  if (json.contains("compressor") && !json["compressor"].is_null()) {
    const Json& compressor = json["compressor"];
    if (!compressor.is_object()) refuse_json(source, "compressor", "it is no object");
    array.encoding.codecs.push_back(
        codec_of(json_text(json_member(compressor, "id", source), "id", source), compressor, array.dtype, source));
  }
  if (json.contains("dimension_separator")) {
    const std::string separator = json_text(json["dimension_separator"], "dimension_separator", source);
    if (separator != "." && separator != "/") refuse_json(source, "dimension_separator", "neither . nor /");
    array.separator = separator[0];
  }
  array.attributes = attributes;
  const auto names = attributes.find("_ARRAY_DIMENSIONS");
  if (names != attributes.end()) {
    const auto* texts = std::get_if<std::vector<std::string>>(&names->second);
    if (texts != nullptr) array.axes = *texts;
  }
  return array;
}

ZarrArray parse_zarr3_array(const Json& json, std::string_view source) {
  ZarrArray array;
  array.version = 3;
  array.shape = json_extents(json_member(json, "shape", source), "shape", source, 0);
  array.dtype = zarr_type(json_member(json, "data_type", source), "data_type", source).dtype;
  const auto [grid, grid_settings] = named_settings(json_member(json, "chunk_grid", source), "chunk_grid", source);
  if (grid != "regular") throw ZarrRefusal{cat("chunk grid ", grid.substr(0, 60))};
  array.chunk = json_extents(json_member(grid_settings, "chunk_shape", source), "chunk_shape", source, 1);
  check_shape(array, source);
  const auto [key, key_settings] = named_settings(json_member(json, "chunk_key_encoding", source), "chunk_key_encoding", source);
  if (key != "default" && key != "v2") throw ZarrRefusal{cat("chunk keys ", key.substr(0, 60))};
  array.has_prefix = key == "default";
  array.separator = array.has_prefix ? '/' : '.';
  if (key_settings.contains("separator")) {
    const std::string separator = json_text(key_settings["separator"], "separator", source);
    if (separator != "." && separator != "/") refuse_json(source, "separator", "neither . nor /");
    array.separator = separator[0];
  }
  array.fill = fill_value(json_member(json, "fill_value", source), array.dtype, source);
  parse_codecs(json_member(json, "codecs", source), array, source);
  if (json.contains("storage_transformers") && !json["storage_transformers"].empty()) throw ZarrRefusal{"storage transformers"};
  if (json.contains("attributes")) array.attributes = json_attributes(json["attributes"]);
  if (json.contains("dimension_names") && !json["dimension_names"].is_null()) {
    array.axes = json_texts(json["dimension_names"], "dimension_names", source);
  }
  return array;
}

}  // namespace welkin::data
