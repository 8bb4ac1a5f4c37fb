// SPDX-License-Identifier: Apache-2.0
// The text of --help, made from the tables of flags and keys.
#include "config/help/help_text.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "config/flags/flag.h"
#include "config/help/option.h"
#include "core/text.h"

namespace welkin::config {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kLeftColumn = 34, kShortLeftColumn = 30;

// "sc21, sc22" for flags that only some tutorials have; nothing for flags of all or none.
std::string origin_text(TutorialBits bits) {
  if (bits == 0 || bits == kAllTutorials) return "";
  std::vector<std::string_view> names;
  for (const Tutorial tutorial : {Tutorial::Sc21, Tutorial::Sc22, Tutorial::Sc23, Tutorial::Dl4sci25}) {
    if ((bits & bit_of(tutorial)) != 0) names.push_back(tutorial_name(tutorial));
  }
  return cat(" {", join(names, ", "), "}");
}

std::string row(const std::string& option, std::string_view help, size_t left_column) {
  std::string left = "  " + option;
  if (left.size() + 2 > left_column) {
    left += cat("\n", std::string(left_column, ' '));
  } else {
    left.resize(left_column, ' ');
  }
  return cat(left, wrapped(help, kWidth, left_column), "\n");
}

// A sentence as long as a line, else its first clause: up to the first semicolon or colon outside of parentheses and after more
// than a word. The whole sentence where there is none.
std::string_view first_clause(std::string_view sentence, size_t most) {
  constexpr size_t kLeast = 12;
  int depth = 0;
  for (size_t i = 0; sentence.size() > most && i < most; ++i) {
    depth += sentence[i] == '(' ? 1 : sentence[i] == ')' ? -1 : 0;
    const bool ends_here = depth == 0 && (sentence[i] == ';' || sentence[i] == ':') && sentence.substr(i + 1).starts_with(' ');
    if (ends_here && i >= kLeast) return sentence.substr(0, i);
  }
  return sentence;
}

// The sentence without a remark in parentheses at its end, where the line is too short.
std::string_view without_remark(std::string_view sentence, size_t most) {
  const size_t open = sentence.rfind(" (");
  return sentence.size() > most && sentence.ends_with(')') && open <= most ? sentence.substr(0, open) : sentence;
}

std::string short_row(const Flag& flag) {
  constexpr size_t kMost = kWidth - kShortLeftColumn;
  std::string help(first_clause(without_remark(flag.help, kMost), kMost));
  if (help.size() + flag.note.size() <= kMost) help += flag.note;
  return row(typed_form(flag), help, kShortLeftColumn);
}

// The flags in the verb's short help: its own, those that control reading, and the keys of verbs of its sort, as a flag or by
// --set. Its own come last in a verb about its configuration, and first in others.
std::vector<Flag> common_flags(const HelpPage& page) {
  std::vector<Flag> flags, own;
  for (const Flag& flag : all_flags(page.extra)) {
    if (flag.is_extra && flag.listed == Listed::Always) own.push_back(flag);
  }
  if (page.common == Common::EveryVerb) flags = own;
  for (const Flag& flag : all_flags(page.extra)) {
    if (flag.key == nullptr && !flag.is_extra && flag.listed == Listed::Always) flags.push_back(flag);
  }
  for (const Key& key : schema()) {
    if (key.common != Common::Nobody && key.common <= page.common) flags.push_back(flag_of(key));
  }
  if (page.common != Common::EveryVerb) flags.insert(flags.end(), own.begin(), own.end());
  return flags;
}

std::string grouped(const std::vector<Flag>& flags, const std::function<std::string(const Flag&)>& row_of) {
  std::vector<std::string_view> titles;
  for (const Flag& flag : flags) {
    if (std::find(titles.begin(), titles.end(), group_of(flag)) == titles.end()) titles.push_back(group_of(flag));
  }
  std::string text;
  for (const std::string_view title : titles) {
    text += cat("\n", title, ":\n");
    for (const Flag& flag : flags) {
      if (group_of(flag) == title) text += row_of(flag);
    }
  }
  return text;
}

std::string usage_text(const HelpPage& page) {
  std::string text;
  for (const std::string& line : page.usage) {
    text += cat(text.empty() ? "Usage: " : "       ", wrapped(cat(page.program, " ", line), kWidth, 9), "\n");
  }
  return text;
}

std::string short_text(const HelpPage& page) {
  return cat(usage_text(page), grouped(common_flags(page), short_row), "\n--help=all shows everything.\n");
}

std::string full_text(const HelpPage& page) {
  const auto full_row = [](const Flag& flag) {
    return row(typed_form(flag), cat(flag.help, flag.note, origin_text(flag.tutorials)), kLeftColumn);
  };
  return cat(usage_text(page),
             "\nA value comes from: default < file < preset < flag. A flag counts only when it is given; a switch\n"
             "has a --no-... form. Flags may be shortened as long as they stay unique, and --tp, --cp, --pp,\n"
             "--sp stand for --tensor_parallel, --context_parallel, --pipeline_parallel, --sequence_parallel.\n"
             "{sc21, ...}: tutorials that have the flag.\n",
             grouped(all_flags(page.extra), full_row),
             "\nAll keys for --set are listed in docs/reference/keys.md. Exit codes: 0 done, 2 usage or\n"
             "configuration, 3 data, 4 communication, 5 checkpoint, 6 a device that computes wrong numbers, 130\n"
             "interrupted with nothing to show for it, 1 anything else.\n");
}

}  // namespace

std::string help_text(const HelpPage& page, Help form) { return form == Help::All ? full_text(page) : short_text(page); }

}  // namespace welkin::config
