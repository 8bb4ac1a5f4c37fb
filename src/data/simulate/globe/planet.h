// SPDX-License-Identifier: Apache-2.0
// The surface of the simulated planet: continents and mountains drawn from a seed, smooth enough for the truncation.
#pragma once

#include <cstdint>

#include "data/simulate/globe/sphere_transform.h"

namespace welkin::data::simulate {

struct Planet {
  ModeValues ground;  // height above the sea, m
  ModeValues land;    // share of land; overshoots [0, 1] slightly, as truncated fields do
};

// The same seed gives the same continents at every truncation. `sphere` has Gaussian rows.
Planet make_planet(const SphereTransform& sphere, uint64_t seed);

}  // namespace welkin::data::simulate
