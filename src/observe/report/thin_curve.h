// SPDX-License-Identifier: Apache-2.0
// Fewer points of a curve, with nothing smoothed: extremes stay, at their own steps.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "observe/events/event_reader.h"

namespace welkin::observe {

// At most `most` points (5 or more) in their order: the first, the last, and of each of equal stretches between them the smallest
// and the largest. Where a stretch holds values that are not finite, the first of these stays too. All where there are no more.
std::vector<ScalarPoint> thinned(std::span<const ScalarPoint> points, size_t most);

}  // namespace welkin::observe
