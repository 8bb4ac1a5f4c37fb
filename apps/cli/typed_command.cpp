// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/typed_command.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "core/text.h"
#include "launch/batch/shell_word.h"

namespace welkin::apps {

std::string typed_command(const Application& application, int argc, char** argv, const launch::RankInfo& place) {
  if (place.launcher == "welkin launch") {
    const char* typed = std::getenv("WELKIN_COMMAND");
    return typed == nullptr ? std::string() : std::string(typed);
  }
  if (place.world_size > 1) return {};
  std::vector<std::string> words = application.options;
  words.insert(words.end(), argv + 1, argv + argc);
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(application.options.size()), "train");
  return cat("welkin ", launch::shell_line(words));
}

std::string resume_command(std::string command, bool resumes) {
  return resumes || command.empty() ? command : command + " --resume";
}

}  // namespace welkin::apps
