// SPDX-License-Identifier: Apache-2.0
// What --help prints, made from the table of flags.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "config/resolve/flag.h"
#include "core/text.h"

namespace welkin::config {
namespace {

constexpr size_t kLeftColumn = 34;
constexpr size_t kWidth = 110;

std::string left_text(const Flag& flag) {
  const std::string dashed = cat("  --", flag.name);
  if (flag.kind == FlagKind::OptionalValue) return cat(dashed, "[=", flag.metavar, "]");
  return flag.metavar.empty() ? dashed : cat(dashed, " ", flag.metavar);
}

// "sc21, sc22" for flags that only some tutorials have; nothing for flags of all or none.
std::string origin_text(TutorialBits bits) {
  if (bits == 0 || bits == kAllTutorials) return "";
  std::vector<std::string_view> names;
  for (const Tutorial tutorial : {Tutorial::Sc21, Tutorial::Sc22, Tutorial::Sc23, Tutorial::Dl4sci25}) {
    if ((bits & bit_of(tutorial)) != 0) names.push_back(tutorial_name(tutorial));
  }
  return cat(" {", join(names, ", "), "}");
}

std::string wrapped(std::string_view text) {
  std::string lines;
  while (text.size() > kWidth - kLeftColumn) {
    const size_t blank = text.rfind(' ', kWidth - kLeftColumn);
    if (blank == std::string_view::npos || blank == 0) break;
    lines += cat(text.substr(0, blank), "\n", std::string(kLeftColumn, ' '));
    text.remove_prefix(blank + 1);
  }
  return lines + std::string(text);
}

std::string row(const Flag& flag) {
  std::string left = left_text(flag);
  if (left.size() + 2 > kLeftColumn) {
    left += cat("\n", std::string(kLeftColumn, ' '));
  } else {
    left.resize(kLeftColumn, ' ');
  }
  return cat(left, wrapped(flag.help + origin_text(flag.tutorials)), "\n");
}

std::string_view group_of(const Flag& flag) {
  if (flag.is_extra) return "This verb";
  if (flag.key == nullptr) return "Which configuration";
  const std::string_view component = component_of(*flag.key);
  if (component == "switches") return "Speed switches of the tutorials (hints: docs/reference/switches.md)";
  if (component == "data") return "Data";
  if (component == "parallel") return "Several processes";
  if (component == "output") return "Output";
  return "Training";
}

std::string group_text(const std::vector<Flag>& flags, std::string_view title) {
  std::string text;
  for (const Flag& flag : flags) {
    if (group_of(flag) == title) text += row(flag);
  }
  return text.empty() ? text : cat("\n", title, ":\n", text);
}

}  // namespace

std::string help_text(std::string_view program, const std::vector<ExtraFlag>& extra) {
  const std::vector<Flag> flags = all_flags(extra);
  std::string text =
      cat("Usage: ", program, " --yaml_config FILE [--config PRESET] [flags]\n",
          "\nA value comes from: default < file < preset < flag. A flag counts only when it is given; a switch has a\n",
          "--no-... form. Flags may be shortened as long as they stay unique,\n",
          "and --tp, --cp, --sp stand for --tensor_parallel, --context_parallel, --sequence_parallel.\n",
          "{sc21, ...}: tutorials that have the flag.\n");
  std::vector<std::string_view> titles;
  for (const Flag& flag : flags) {
    if (std::find(titles.begin(), titles.end(), group_of(flag)) == titles.end()) titles.push_back(group_of(flag));
  }
  for (const std::string_view title : titles) text += group_text(flags, title);
  return text +
         "\nAll keys that --set takes stand in docs/reference/keys.md. Exit codes: 0 done, 2 usage or configuration, 3 data, 4 "
         "communication,\n"
         "5 checkpoint, 1 anything else, 130 interrupted with nothing to show for it.\n";
}

}  // namespace welkin::config
