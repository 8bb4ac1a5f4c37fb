// SPDX-License-Identifier: Apache-2.0
#include "data/sample/dataset.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/text.h"
#include "data/sample/sequences.h"

namespace welkin::data {
namespace {

// Lines of several data sets; equal lines appear once.
template <typename Lines>
std::vector<std::string> lines_of(const std::vector<const Dataset*>& datasets, const Lines& lines_of_one) {
  std::vector<std::string> lines;
  for (const Dataset* dataset : datasets) {
    for (std::string& line : lines_of_one(*dataset)) {
      if (std::ranges::count(lines, line) == 0) lines.push_back(std::move(line));
    }
  }
  return lines;
}

}  // namespace

std::string Dataset::location(const SamplePlan& plan) const { return cat("index=", plan.index); }

std::unique_ptr<Dataset> Dataset::of_steps(int64_t steps, int64_t longest) const {
  return std::make_unique<Sequences>(*this, steps, std::make_shared<const std::vector<int64_t>>(sequence_starts(*this, longest)));
}

std::vector<std::string> warnings_of(const std::vector<const Dataset*>& datasets) {
  return lines_of(datasets, [](const Dataset& dataset) { return dataset.warnings(); });
}

std::vector<std::string> notes_of(const std::vector<const Dataset*>& datasets) {
  return lines_of(datasets, [](const Dataset& dataset) { return dataset.notes(); });
}

bool may_be_same_unit(std::string_view a, std::string_view b) {
  const auto plain = [](std::string_view unit) {
    std::string letters;
    std::ranges::copy_if(unit, std::back_inserter(letters), [](char c) { return c != '*' && c != '^' && c != ' '; });
    return letters;
  };
  return a.empty() || b.empty() || plain(a) == plain(b);
}

std::string missing_line() {
  return "The files declare missing values. They are NaN and handled by nan_policy: error and off refuse a sample that has them, "
         "hole gives such points no weight, mask puts the channel's mean in their place, report logs them.";
}

ArrayTransform input_transform(const SampleSpec& spec) {
  return {spec.input_clip, spec.input_log, spec.input_log_eps, spec.input_mean, spec.input_std};
}
ArrayTransform target_transform(const SampleSpec& spec) {
  return {spec.target_clip, spec.target_log, spec.target_log_eps, spec.target_mean, spec.target_std};
}

Region whole(const SampleSpec& spec) {
  Region region;
  for (size_t d = 1; d < spec.input.shape.size() && d <= region.extent.size(); ++d) region.extent[d - 1] = spec.input.shape[d];
  return region;
}

}  // namespace welkin::data
