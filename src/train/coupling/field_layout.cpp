// SPDX-License-Identifier: Apache-2.0
#include "train/coupling/field_layout.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace welkin::train {

at::Tensor view_of(void* values, const std::vector<int64_t>& shape, const FieldLayout& layout) {
  const auto type = layout.is_double ? at::kDouble : at::kFloat;
  if (layout.strides.empty()) return at::from_blob(values, shape, type);
  const bool is_forward = std::ranges::all_of(layout.strides, [](int64_t stride) { return stride > 0; });
  if (layout.strides.size() != shape.size() || !is_forward) {
    throw ConfigError(
        "coupling",
        cat("the layout does not fit a field: strides=(", join(layout.strides, ", "), "), shape=(", join(shape, ", "), ")"),
        "Give an array of this shape, and one stride for each dim, each above 0; in Fortran the dims are reversed, or "
        "same_order=.true.");
  }
  return at::from_blob(values, shape, layout.strides, type);
}

}  // namespace welkin::train
