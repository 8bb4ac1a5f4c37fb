// SPDX-License-Identifier: Apache-2.0
// Statistics of predicted boxes as pictures (SVG), the prediction beside the target.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace welkin::train {

// `json`: of BoxStatistics. A figure for each channel, into a folder that is made if absent; returns the paths.
std::vector<std::filesystem::path> write_box_plots(const std::string& json, const std::filesystem::path& folder);

}  // namespace welkin::train
