// SPDX-License-Identifier: Apache-2.0
#include "data/formats/json_values.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr int kDeepestJson = 100;  // values are copied and printed by functions that call themselves for each level

// JSON has no NaN: writers store it as a text.
std::optional<double> json_number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<AttributeValue> json_attribute(const Json& value) {
  if (value.is_string()) return std::vector<std::string>{value.get<std::string>()};
  if (const auto number = json_number(value)) return std::vector<double>{*number};
  if (!value.is_array() || value.empty()) return std::nullopt;
  std::vector<std::string> texts;
  std::vector<double> numbers;
  for (const Json& item : value) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
    if (const auto number = json_number(item)) numbers.push_back(*number);
  }
  if (texts.size() == value.size()) return texts;
  if (numbers.size() == value.size()) return numbers;
  return std::nullopt;
}

// Whole numbers without a decimal point, so that other readers take them as integers.
Json number_json(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  if (value == std::nearbyint(value) && std::abs(value) < 0x1p53) return static_cast<int64_t>(value);
  return value;
}

}  // namespace

void refuse_json(std::string_view source, std::string_view key, std::string_view reason) {
  throw DataError("data", cat("unusable metadata: path=", source, ", key=", key, ", reason=", reason),
                  "The file is damaged or of a kind that is not supported: see docs/reference/formats.md");
}

Json parse_json(std::string_view text, std::string_view source) {
  const auto limit = [source](int depth, Json::parse_event_t /*event*/, const Json& /*value*/) {
    if (depth > kDeepestJson) refuse_json(source, "", cat("nested too deeply: limit=", kDeepestJson));
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, limit);
  } catch (const Json::parse_error& error) {
    refuse_json(source, "", cat("it is no JSON at byte ", error.byte));
  } catch (const Json::exception&) {
    refuse_json(source, "", "it is no JSON");
  }
  if (!json.is_object()) refuse_json(source, "", "it is no JSON object");
  return json;
}

const Json& json_member(const Json& object, const char* key, std::string_view source) {
  const auto found = object.find(key);
  if (found == object.end()) refuse_json(source, key, "it is missing");
  return *found;
}

std::string json_text(const Json& value, std::string_view key, std::string_view source) {
  if (!value.is_string()) refuse_json(source, key, "it is no text");
  return value.get<std::string>();
}

int64_t json_integer(const Json& value, std::string_view key, std::string_view source) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return static_cast<int64_t>(number);
  }
  refuse_json(source, key, "it is no size");
}

Extents json_extents(const Json& value, std::string_view key, std::string_view source, int64_t smallest) {
  if (!value.is_array()) refuse_json(source, key, "it is no list of sizes");
  if (value.size() > kMostArrayDims) refuse_json(source, key, "more than 32 dimensions");
  Extents extents;
  for (const Json& item : value) {
    extents.push_back(json_integer(item, key, source));
    if (extents.back() < smallest) refuse_json(source, key, cat("a size below ", smallest));
  }
  return extents;
}

std::vector<std::string> json_texts(const Json& value, std::string_view key, std::string_view source) {
  if (!value.is_array()) refuse_json(source, key, "it is no list of texts");
  std::vector<std::string> texts;
  for (const Json& item : value) texts.push_back(item.is_null() ? "" : json_text(item, key, source));
  return texts;
}

Attributes json_attributes(const Json& object) {
  Attributes attributes;
  if (!object.is_object()) return attributes;
  for (const auto& [name, value] : object.items()) {
    if (auto attribute = json_attribute(value)) attributes[name] = std::move(*attribute);
  }
  return attributes;
}

Json attributes_json(const Attributes& attributes) {
  Json object = Json::object();
  for (const auto& [name, value] : attributes) {
    Json list = Json::array();
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) list = *texts;
    if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
      for (const double number : *numbers) list.push_back(number_json(number));
    }
    object[name] = list.size() == 1 ? list[0] : list;
  }
  return object;
}

}  // namespace welkin::data
