// SPDX-License-Identifier: Apache-2.0
// The 20 channels of the training files from the model's eight fields at a point. Two layers cannot know 20 independent things:
// winds and pressures of layers are interpolated to levels, temperatures follow hydrostatically. docs/reference/simulate.md lists
// every formula.
#pragma once

#include <cstdint>

#include "data/simulate/globe/shallow_water.h"

namespace welkin::data::simulate {

// Scalars: depth of the upper and the lower layer (m), air temperature at sea level (K), specific humidity (kg/kg), surface
// temperature (K), ground (m), land (share); vectors: upper and lower wind (m/s).
constexpr Bundle diagnosis_bundle() { return {.scalars = 7, .vectors = 2}; }

class Diagnosis {
 public:
  explicit Diagnosis(const ShallowWaterOptions& options);

  // `point` has the columns of diagnosis_bundle(). Writes channel c to out[c * stride].
  void channels(const double* point, double sine_latitude, float* out, int64_t stride) const;

 private:
  double gravity_, ratio_, upper_, lower_;
};

}  // namespace welkin::data::simulate
