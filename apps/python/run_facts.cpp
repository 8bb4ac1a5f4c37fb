// SPDX-License-Identifier: Apache-2.0
#include "apps/python/run_facts.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/key.h"
#include "config/schema/value.h"
#include "config/yaml/yaml_document.h"
#include "train/evaluate/normalization.h"

namespace welkin::apps::python {
namespace {

using Json = nlohmann::ordered_json;

// Values of keys nest at most two levels of lists.
Json value_json(const config::YamlDocument& document, config::YamlId id) {
  const config::YamlNode& node = document.at(id);
  Json out;
  switch (node.kind) {
    case config::YamlKind::Null:
      break;
    case config::YamlKind::Bool:
      out = node.boolean;
      break;
    case config::YamlKind::Int:
      out = node.integer;
      break;
    case config::YamlKind::Float:
      if (std::isfinite(node.number)) {
        out = node.number;
      } else {
        out = std::isnan(node.number) ? "nan" : node.number < 0 ? "-inf" : "inf";
      }
      break;
    case config::YamlKind::String:
      out = node.text;
      break;
    case config::YamlKind::Sequence:
      out = Json::array();
      for (const config::YamlId item : node.items) out.push_back(value_json(document, item));
      break;
    case config::YamlKind::Mapping:
      out = Json::object();
      for (const config::YamlEntry& entry : node.entries) out[entry.key] = value_json(document, entry.value);
      break;
  }
  return out;
}

const char* geometry_name(data::Geometry geometry) {
  switch (geometry) {
    case data::Geometry::Sphere:
      return "sphere";
    case data::Geometry::PeriodicBox:
      return "box";
    case data::Geometry::Plane:
      break;
  }
  return "plane";
}

}  // namespace

Json config_json(const config::RunConfig& config) {
  Json all = Json::object();
  for (const config::Key& key : config::schema()) {
    if (!config::has_effect(key, config)) continue;
    Json* place = &all;
    for (const std::string_view part : config::split(key.path, '.')) place = &(*place)[std::string(part)];
    const config::YamlDocument value = config::parse_yaml_value(config::value_text(config, key), std::string(key.path));
    *place = value_json(value, value.root);
  }
  for (const auto& [name, value] : config.options) all["options"][name] = value;
  return all;
}

Json spec_json(const data::SampleSpec& spec) {
  Json json = Json::parse(train::normalization_json(spec));
  json["input"]["shape"] = spec.input.shape;
  json["target"]["shape"] = spec.target.shape;
  json["geometry"] = geometry_name(spec.geometry);
  json["latitude"] = spec.latitude;
  json["longitude"] = spec.longitude;
  json["newest"] = spec.newest_input_channel;
  json["earlier"] = spec.earlier_target;
  json["fill"] = spec.input_fill;
  return json;
}

}  // namespace welkin::apps::python
