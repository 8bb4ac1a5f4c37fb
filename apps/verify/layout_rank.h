// SPDX-License-Identifier: Apache-2.0
// One process of `welkin verify --layouts`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/application.h"
#include "launch/ranks.h"

namespace welkin::apps {

inline constexpr int64_t kSample = 24;

struct LayoutArguments {
  std::string choice = "pairs";
  std::vector<int64_t> worlds{2, 4, 8};
  std::string model = "vit";
  int64_t deadline_s = 60;
  int64_t hang_rank = -1;
  std::string device = "cpu";
  std::optional<int64_t> sample;  // nothing: kSample for the choice "pairs", else 0
  std::optional<uint64_t> seed;   // nothing: a new one each time
  std::string checkpoint_folder = std::filesystem::temp_directory_path().string();
};

// Prints a line for each layout, on the first rank. Returns the exit code: 0 if at least one was compared and all are equal.
int verify_on_rank(const launch::RankInfo& place, const LayoutArguments& arguments, Application& application);

}  // namespace welkin::apps
