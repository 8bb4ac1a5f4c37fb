// SPDX-License-Identifier: Apache-2.0
// Measures a step with different parts of the model run again: bytes by a count of tensors at the borders of parts, time by the
// clock. Most steps run every part again; to measure an option of equal parts, one of them takes it in one step. So the probe
// needs little more memory than the least possible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/recompute/memory_plan.h"
#include "train/step/setup.h"

namespace welkin::train {

struct ProbedStep {
  StepMemory memory;
  std::vector<std::vector<std::vector<std::string>>> again;  // by part and option: the sites that run again; option 0: none
};

// Measures on a set-up of its own (probe_steps.h). Every rank calls it, and all get the largest figures of all ranks.
ProbedStep probe_step(const Layout& layout, const SetupSource& source, const RunLength& length);

}  // namespace welkin::train
