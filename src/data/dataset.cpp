// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

namespace welkin::data {

Region whole(const SampleSpec& spec) {
  Region region;
  for (size_t d = 1; d < spec.input.shape.size() && d <= region.extent.size(); ++d) region.extent[d - 1] = spec.input.shape[d];
  return region;
}

}  // namespace welkin::data
