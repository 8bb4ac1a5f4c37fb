// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/doubled_times.h"

#include <algorithm>
#include <iterator>

#include "core/text.h"
#include "data/sample/calendar.h"

namespace welkin::data {
namespace {

// Times of a file increase. Most pairs of files are told apart by their ends.
std::vector<int64_t> times_of_both(const FieldFacts& a, const FieldFacts& b) {
  std::vector<int64_t> both;
  if (a.member != b.member || a.time.empty() || b.time.empty()) return both;
  if (a.time.back() < b.time.front() || b.time.back() < a.time.front()) return both;
  std::ranges::set_intersection(a.time, b.time, std::back_inserter(both));
  return both;
}

}  // namespace

std::string doubled_times_text(const std::vector<const FieldFacts*>& files) {
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t j = i + 1; j < files.size(); ++j) {
      const std::vector<int64_t> both = times_of_both(*files[i], *files[j]);
      if (both.empty()) continue;
      return cat("two files hold the same times: files=", files[i]->path.filename().string(), " and ",
                 files[j]->path.filename().string(), ", times=", both.size(),
                 ", first=", format_date(parse_calendar(files[i]->calendar), both.front()),
                 ". They count twice: remove them from one file, or give members of an ensemble the attribute member");
    }
  }
  return {};
}

}  // namespace welkin::data
