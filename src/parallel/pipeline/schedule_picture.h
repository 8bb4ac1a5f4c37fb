// SPDX-License-Identifier: Apache-2.0
// Draws a schedule: a line of slots per rank as text, or as SVG.
#pragma once

#include <string>

#include "parallel/pipeline/schedule_timing.h"

namespace welkin::parallel {

// One row per rank and one column per unit of time (of `costs`, whose passes must be whole units): "F3" forward of micro-batch
// 3, "B3" backward, "I3" and "W3" its halves; with chunks "F3.1" for the second chunk. A pass of several units continues as
// "-". Below: the idle fraction beside that of the publication, and the activations that ranks hold.
std::string schedule_text(const Schedule& schedule, const PassCosts& costs = {});

// The same as a picture, to scale for any costs.
std::string schedule_svg(const Schedule& schedule, const PassCosts& costs = {});

}  // namespace welkin::parallel
