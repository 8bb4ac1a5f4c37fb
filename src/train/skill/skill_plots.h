// SPDX-License-Identifier: Apache-2.0
// Scores of a forecast as pictures: curves by lead, spectra, ranks and reliability (SVG), maps of the error of the last lead
// (PNG), a scorecard (SVG).
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "observe/image/map_frame.h"
#include "train/skill/skill_report.h"

namespace welkin::train {

// Into a folder, which is made if absent; returns the paths. Curves are of the first region, with intervals of the bootstrap. The
// scorecard shows for each channel and region, by lead, by how many percent the RMSE is below that of the second forecast, or of
// persistence where there is none; blue is better. `map`: of the fields, where they are on the sphere.
std::vector<std::filesystem::path> write_skill_plots(const Skill& skill, const Confidence& confidence,
                                                     const std::optional<observe::image::MapFrame>& map,
                                                     const std::filesystem::path& folder);

}  // namespace welkin::train
