// SPDX-License-Identifier: Apache-2.0
// Named numbers with units, in sections: as a table for a reader, as JSON for a program.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace welkin::plan {

struct Figure {
  std::string name;
  std::optional<double> value;  // nothing: not known
  std::string unit;
  int decimals = 0;
  std::string note{};  // how it was computed
};

struct Section {
  std::string title;
  std::vector<Figure> figures;
};

// FLOPs and bytes are printed in a smaller unit where fewer than two digits would remain.
std::string figures_text(const std::vector<Section>& sections);
// {"title": {"name": {"value": 1.2, "unit": "days"}}}; a value that is not known is null.
std::string figures_json(const std::vector<Section>& sections);

}  // namespace welkin::plan
