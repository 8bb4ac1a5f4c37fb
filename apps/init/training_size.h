// SPDX-License-Identifier: Apache-2.0
// Chooses batch size and run length for new training files, by the planner and the memory of this machine.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "apps/cli/application.h"
#include "apps/init/preset.h"

namespace welkin::apps {

inline constexpr std::string_view kForecastPreset = "forecast.yaml";

// Writes the preset of `text` into `folder` with the largest batch that fits, and the number of steps of a few epochs.
TrainingSize write_sized_preset(const Application& application, const std::filesystem::path& folder, const std::string& preset,
                                const std::function<std::string(const TrainingSize&)>& text);

}  // namespace welkin::apps
