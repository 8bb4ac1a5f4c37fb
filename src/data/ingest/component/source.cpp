// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/component/source.h"

#include <algorithm>

namespace welkin::ingest_component {

void copy_text(std::string_view from, std::span<char> to) {
  const size_t length = std::min(from.size(), to.size() - 1);
  std::copy_n(from.begin(), length, to.begin());
  to[length] = '\0';
}

int32_t add_grid(std::vector<Grid>& grids, Grid grid) {
  const auto same = std::ranges::find_if(
      grids, [&](const Grid& other) { return other.latitude == grid.latitude && other.longitude == grid.longitude; });
  if (same != grids.end()) return static_cast<int32_t>(same - grids.begin());
  if (grids.size() >= WELKIN_INGEST_MAX_GRIDS) throw SourceError("too many different grids in one file");
  grids.push_back(std::move(grid));
  return static_cast<int32_t>(grids.size() - 1);
}

int32_t add_variable(Tables& tables, const welkin_ingest_variable& variable) {
  if (tables.variables.size() >= WELKIN_INGEST_MAX_VARIABLES) throw SourceError("too many variables in one file");
  tables.variables.push_back(variable);
  return static_cast<int32_t>(tables.variables.size() - 1);
}

void add_plane(Tables& tables, const welkin_ingest_plane& plane) {
  if (static_cast<int64_t>(tables.planes.size()) >= WELKIN_INGEST_MAX_PLANES) throw SourceError("too many fields in one file");
  tables.planes.push_back(plane);
}

}  // namespace welkin::ingest_component
