// SPDX-License-Identifier: Apache-2.0
#include "plan/figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/text.h"
#include "observe/log/table.h"

namespace welkin::plan {
namespace {

// Units from large to small, and the factor between neighbours.
struct UnitLadder {
  std::vector<std::string_view> units;
  double step;
};

const UnitLadder* ladder_of(std::string_view unit) {
  static const UnitLadder kFlops{{"PFLOP", "TFLOP", "GFLOP", "MFLOP", "kFLOP", "FLOP"}, 1000};
  static const UnitLadder kBytes{{"GiB", "MiB", "KiB", "B"}, 1024};
  for (const UnitLadder* ladder : {&kFlops, &kBytes}) {
    if (std::ranges::find(ladder->units, unit) != ladder->units.end()) return ladder;
  }
  return nullptr;
}

// Takes a smaller unit if the number would have fewer than two digits.
Figure readable(Figure figure) {
  const UnitLadder* ladder = ladder_of(figure.unit);
  if (ladder == nullptr || !figure.value || *figure.value <= 0) return figure;
  auto unit = std::ranges::find(ladder->units, figure.unit);
  while (*figure.value < std::pow(10.0, 1 - figure.decimals) && unit + 1 != ladder->units.end()) {
    figure.unit = *++unit;
    *figure.value *= ladder->step;
    figure.decimals = unit + 1 == ladder->units.end() ? 0 : 1;
  }
  return figure;
}

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
    for (const Figure& given : section.figures) {
      const Figure figure = readable(given);
      table.add_row({figure.name, number_text(figure), figure.unit, figure.note});
    }
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
