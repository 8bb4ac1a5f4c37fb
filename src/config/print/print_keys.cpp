// SPDX-License-Identifier: Apache-2.0
// The schema as documentation.
#include <string>
#include <string_view>
#include <vector>

#include "config/print/print.h"
#include "config/resolve/tutorial.h"
#include "config/schema/key.h"
#include "config/schema/value.h"
#include "core/text.h"

namespace welkin::config {
namespace {

std::string known_in(const Key& key) {
  if (key.tutorials == 0) return "ours";
  if (key.tutorials == kAllTutorials) return "all";
  std::vector<std::string_view> names;
  for (const Tutorial tutorial : {Tutorial::Sc21, Tutorial::Sc22, Tutorial::Sc23, Tutorial::Dl4sci25}) {
    if ((key.tutorials & bit_of(tutorial)) != 0) names.push_back(tutorial_title(tutorial));
  }
  return join(names, ", ");
}

std::string names_of(const Key& key) {
  std::string names = cat("`", key.flat, "`");
  for (const std::string_view alias : split(key.aliases, '|')) names += cat(", `", alias, "`");
  return names + (key.is_flag ? " (flag)" : "");
}

// A '|' would end a cell.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::string keys_markdown() {
  std::string text;
  std::string_view component;
  for (const Key& key : schema()) {
    if (component_of(key) != component) {
      component = component_of(key);
      text += cat(text.empty() ? "" : "\n", "## ", component,
                  "\n\n| key | type | default | unit | files of | meaning |\n| --- | --- | --- | --- | --- | --- |\n");
    }
    const std::string meaning = cat(key.summary, key.inert ? " (no effect)" : "");
    text += cat("| ", names_of(key), " | ", escaped(type_name(key)), " | ", escaped(value_text(RunConfig{}, key)), " | ",
                key.unit, " | ", known_in(key), " | ", escaped(meaning), " |\n");
  }
  return text;
}

}  // namespace welkin::config
