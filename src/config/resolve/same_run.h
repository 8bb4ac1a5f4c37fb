// SPDX-License-Identifier: Apache-2.0
// Compares the runs of two configurations: a run folder is written by one configuration only, unless the run is resumed.
#pragma once

#include <string>

#include "config/schema/run_config.h"

namespace welkin::config {

// True when a and b agree in every key that can change the numbers of a run. May differ: threads, workers, device, paths'
// roots, logs and outputs, the length of the run, --resume (rows of the schema marked `free`). Otherwise *difference names the
// first keys with both values.
bool same_run(const RunConfig& a, const RunConfig& b, std::string* difference);

// The keys that even a resumed run may not change, with both values: --compat and its rules, by which a position means other
// samples. Empty when all agree.
std::string pinned_difference(const RunConfig& a, const RunConfig& b);

}  // namespace welkin::config
