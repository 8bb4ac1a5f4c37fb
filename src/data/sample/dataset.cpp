// SPDX-License-Identifier: Apache-2.0
#include "data/sample/dataset.h"

#include "core/text.h"

namespace welkin::data {

std::string Dataset::location(const SamplePlan& plan) const { return cat("index=", plan.index); }

ArrayTransform input_transform(const SampleSpec& spec) {
  return {spec.input_clip, spec.input_log, spec.input_mean, spec.input_std};
}
ArrayTransform target_transform(const SampleSpec& spec) {
  return {spec.target_clip, spec.target_log, spec.target_mean, spec.target_std};
}

Region whole(const SampleSpec& spec) {
  Region region;
  for (size_t d = 1; d < spec.input.shape.size() && d <= region.extent.size(); ++d) region.extent[d - 1] = spec.input.shape[d];
  return region;
}

}  // namespace welkin::data
