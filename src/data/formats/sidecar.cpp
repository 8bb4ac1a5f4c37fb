// SPDX-License-Identifier: Apache-2.0
#include "data/formats/sidecar.h"

#include <array>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/formats/json_values.h"
#include "data/formats/memory_array.h"

namespace welkin::data {
namespace {

struct TypeRow {
  std::string_view name, code;  // Zarr 3 and numpy's name; numpy's letter and width
  Dtype dtype;
};

constexpr std::array kTypes{
    TypeRow{"float64", "f8", Dtype::F64},   TypeRow{"float32", "f4", Dtype::F32}, TypeRow{"float16", "f2", Dtype::F16},
    TypeRow{"bfloat16", "V2", Dtype::BF16}, TypeRow{"int64", "i8", Dtype::I64},   TypeRow{"int32", "i4", Dtype::I32},
    TypeRow{"int16", "i2", Dtype::I16},     TypeRow{"int8", "i1", Dtype::I8},     TypeRow{"uint64", "u8", Dtype::U64},
    TypeRow{"uint32", "u4", Dtype::U32},    TypeRow{"uint16", "u2", Dtype::U16},  TypeRow{"uint8", "u1", Dtype::U8},
    TypeRow{"bool", "b1", Dtype::Bool}};

bool json_choice(const Json& object, const char* key, std::string_view no, std::string_view yes, std::string_view source) {
  if (!object.contains(key)) return false;
  const std::string text = json_text(object[key], key, source);
  if (text != no && text != yes) refuse_json(source, key, cat("it is neither ", no, " nor ", yes));
  return text == yes;
}

SidecarArray parse_side_array(const Json& object, std::string_view source) {
  SidecarArray array;
  if (object.contains("shape")) {
    array.shape = json_extents(object["shape"], "shape", source, 0);
    const auto type = named_type(json_text(json_member(object, "dtype", source), "dtype", source));
    if (!type) refuse_json(source, "dtype", "no known type of number");
    array.dtype = type->dtype;
    array.big_endian = type->big_endian || json_choice(object, "byte_order", "little", "big", source);
  }
  array.fortran_order = json_choice(object, "order", "C", "F", source);
  if (object.contains("offset")) array.offset = static_cast<uint64_t>(json_integer(object["offset"], "offset", source));
  if (object.contains("axes")) array.axes = json_texts(object["axes"], "axes", source);
  if (object.contains("attributes")) array.attributes = json_attributes(object["attributes"]);
  if (object.contains("values")) {
    const Json& list = object["values"];
    if (!list.is_array()) refuse_json(source, "values", "it is no list of numbers");
    array.values.emplace();
    for (const Json& value : list) {
      if (!value.is_number()) refuse_json(source, "values", "it is no list of numbers");
      array.values->push_back(value.get<double>());
    }
  }
  return array;
}

Json side_array_json(const SidecarArray& array) {
  Json object = Json::object();
  if (array.shape) {
    object["shape"] = *array.shape;
    object["dtype"] = type_name_of(array.dtype);
    object["byte_order"] = array.big_endian ? "big" : "little";
    object["order"] = array.fortran_order ? "F" : "C";
    object["offset"] = array.offset;
  }
  if (!array.axes.empty()) object["axes"] = array.axes;
  if (!array.attributes.empty()) object["attributes"] = attributes_json(array.attributes);
  if (array.values) object["values"] = *array.values;
  return object;
}

}  // namespace

std::optional<NamedType> named_type(std::string_view text) {
  const bool has_order = !text.empty() && std::string_view("<>=|").find(text[0]) != std::string_view::npos;
  const std::string_view rest = has_order ? text.substr(1) : text;
  for (const TypeRow& row : kTypes) {
    if (rest == row.code || (!has_order && rest == row.name)) return NamedType{row.dtype, has_order && text[0] == '>'};
  }
  return std::nullopt;
}

std::string_view type_name_of(Dtype dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row.name;
  }
  return "";
}

Sidecar parse_sidecar(std::string_view text, std::string_view source) {
  const Json json = parse_json(text, source);
  Sidecar document;
  if (json.contains("attributes")) document.attributes = json_attributes(json["attributes"]);
  if (json.contains("shape")) document.arrays[""] = parse_side_array(json, source);
  if (!json.contains("arrays")) return document;
  const Json& arrays = json["arrays"];
  if (!arrays.is_object()) refuse_json(source, "arrays", "it is no JSON object");
  for (const auto& [name, object] : arrays.items()) {
    if (!object.is_object()) refuse_json(source, name, "it is no JSON object");
    document.arrays[name] = parse_side_array(object, source);
  }
  return document;
}

std::string sidecar_text(const Sidecar& document) {
  Json arrays = Json::object();
  for (const auto& [name, array] : document.arrays) arrays[name] = side_array_json(array);
  return Json{{"attributes", attributes_json(document.attributes)}, {"arrays", arrays}}.dump(1) + "\n";
}

std::filesystem::path sidecar_path(const std::filesystem::path& path) { return path.string() + ".json"; }

std::optional<Sidecar> read_sidecar(const std::filesystem::path& path) {
  const std::filesystem::path sidecar = sidecar_path(path);
  std::error_code error;
  if (!std::filesystem::is_regular_file(sidecar, error)) return std::nullopt;
  return parse_sidecar(read_file(sidecar, kMaxSidecarBytes), sidecar.string());
}

void add_sidecar(const Sidecar& document, std::string_view source, ArrayFile& file) {
  file.attributes[""].insert(document.attributes.begin(), document.attributes.end());
  for (const auto& [name, side] : document.arrays) {
    file.attributes[name].insert(side.attributes.begin(), side.attributes.end());
    if (!side.values || file.arrays.contains(name)) continue;
    ArrayFacts facts{.source = cat(source, ", dataset=", name),
                     .name = name,
                     .shape = {static_cast<int64_t>(side.values->size())},
                     .chunk = {},
                     .codecs = {},
                     .axes = {},
                     .packing = {}};
    file.arrays[name] = make_memory_array(std::move(facts), *side.values);
  }
}

}  // namespace welkin::data
