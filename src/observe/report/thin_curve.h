// SPDX-License-Identifier: Apache-2.0
// Thins a curve without smoothing: extremes stay, at their own steps.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "observe/events/event_reader.h"

namespace welkin::observe {

// At most `most` points (5 or more): the first, the last, and for each of equal intervals between them the smallest and the
// largest. If an interval has values that are not finite, the first of these stays, too. All points if there are no more.
std::vector<ScalarPoint> thinned(std::span<const ScalarPoint> points, size_t most);

}  // namespace welkin::observe
