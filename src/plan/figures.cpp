// SPDX-License-Identifier: Apache-2.0
#include "plan/figures.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "observe/log/table.h"

namespace welkin::plan {
namespace {

std::string number_text(const Figure& figure) {
  if (!figure.value) return "-";
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", figure.decimals, *figure.value);
  return text;
}

}  // namespace

std::string figures_text(const std::vector<Section>& sections) {
  std::string text;
  for (const Section& section : sections) {
    observe::Table table({{section.title, observe::Align::Left},
                          {"value", observe::Align::Right},
                          {"unit", observe::Align::Left},
                          {"from", observe::Align::Left}});
    for (const Figure& figure : section.figures) table.add_row({figure.name, number_text(figure), figure.unit, figure.note});
    if (!text.empty()) text += "\n";
    text += table.text();
  }
  return text;
}

std::string figures_json(const std::vector<Section>& sections) {
  nlohmann::ordered_json json;
  for (const Section& section : sections) {
    nlohmann::ordered_json& part = json[section.title];
    for (const Figure& figure : section.figures) {
      const nlohmann::ordered_json value = figure.value ? nlohmann::ordered_json(*figure.value) : nlohmann::ordered_json();
      part[figure.name] = {{"value", value}, {"unit", figure.unit}};
    }
  }
  return json.dump(2) + "\n";
}

}  // namespace welkin::plan
