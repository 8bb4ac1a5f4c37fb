// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/tied_stages.h"

#include <algorithm>
#include <set>
#include <utility>

#include "parallel/mesh/axis.h"

namespace welkin::parallel {

std::vector<int64_t> holders_of(const std::vector<model::Segment>& segments, const std::vector<StageRange>& stages, int64_t ranks,
                                const ParamRow& row) {
  std::set<int64_t> places;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const auto works_with_it = [&row](const model::Segment& segment) { return row.is_held_by(segment); };
    const StageRange& range = stages[stage];
    if (std::any_of(segments.begin() + range.begin, segments.begin() + range.end, works_with_it)) {
      places.insert(static_cast<int64_t>(stage) % ranks);
    }
  }
  return {places.begin(), places.end()};
}

// All members create the groups in the same order, that of the table.
std::vector<TiedStages> tied_stages(const std::vector<model::Segment>& segments, const std::vector<StageRange>& stages,
                                    const ParamTable& table, const MeshGroups& groups) {
  const Group& pipeline = groups.along(Axis::Pp);
  std::vector<std::pair<std::vector<int64_t>, TiedStages>> tied;
  for (const ParamRow& row : table.rows()) {
    const std::vector<int64_t> places = holders_of(segments, stages, pipeline.size(), row);
    if (places.size() < 2 || std::ranges::find(places, pipeline.group_rank()) == places.end()) continue;
    auto same = std::ranges::find_if(tied, [&](const auto& known) { return known.first == places; });
    if (same == tied.end()) {
      same = tied.insert(tied.end(), {places, {.ranks = groups.among(Axis::Pp, places, "tied"), .parameters = {}}});
    }
    same->second.parameters.push_back(row.name);
  }
  std::vector<TiedStages> own;
  for (auto& [places, stages_of_set] : tied) own.push_back(std::move(stages_of_set));
  return own;
}

}  // namespace welkin::parallel
