// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/text.h"
#include "observe/plot/plot_frame.h"

namespace welkin::observe {
namespace {

constexpr std::string_view kPageBegin = "<svg ";
constexpr int kStackTitle = 36;

int length_in_tag(std::string_view page, std::string_view name) {
  const std::string before = cat(" ", name, "=\"");
  const size_t at = page.find(before);
  int pixels = 0;
  WELKIN_CHECK(page.starts_with(kPageBegin) && at < page.find('>'), "a page begins with its size");
  std::from_chars(page.data() + at + before.size(), page.data() + page.size(), pixels);
  return pixels;
}

}  // namespace

std::string stacked(const std::string& title, const std::vector<std::string>& pages) {
  constexpr double kBoldShare = 1.1;  // factor by which bold letters are wider
  int width = static_cast<int>(text_width(title, 15) * kBoldShare) + 24, height = kStackTitle;
  for (const std::string& page : pages) {
    width = std::max(width, length_in_tag(page, "width"));
    height += length_in_tag(page, "height");
  }
  SvgPage whole(width, height);
  whole.text({width / 2.0, 24}, title, {.anchor = Anchor::Middle, .size = 15, .bold = true});
  int top = kStackTitle;
  for (const std::string& page : pages) {
    whole.inner(cat(kPageBegin, "y=\"", top, "\" ", page.substr(kPageBegin.size())));
    top += length_in_tag(page, "height");
  }
  return whole.finish();
}

}  // namespace welkin::observe
