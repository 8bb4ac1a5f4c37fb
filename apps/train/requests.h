// SPDX-License-Identifier: Apache-2.0
// Requests by flags of `welkin train` beside the configuration, checked before a rank waits for another. Errors: ConfigError
// with the flags that do not go together.
#pragma once

#include <memory>
#include <optional>

#include "config/flags/command_line.h"
#include "config/resolve/resolve.h"
#include "launch/ranks.h"
#include "train/device/memory_snapshot.h"
#include "train/inject/fault_injector.h"
#include "train/run/trainer.h"

namespace welkin::apps {

// Starts recording for --memory_snapshot; null without the flag.
std::unique_ptr<train::MemorySnapshot> begin_snapshot(const config::CommandLine& line, const config::Resolved& resolved,
                                                      const launch::RankInfo& place);
// --init_map and --init_partial, which need --init_from.
train::interchange::InitialWeights initial_weights(const config::CommandLine& line);
// --find_lr.
std::optional<train::LrRangeOptions> lr_range_of(const config::CommandLine& line, const config::Resolved& resolved);
// --inject, null where it is not given.
std::unique_ptr<train::FaultInjector> faults_of(const config::CommandLine& line, const config::Resolved& resolved,
                                                const launch::RankInfo& place);
// Measurements need the same ranks to the end, so an elastic job refuses them.
void check_elastic(const launch::RankInfo& place, const config::Resolved& resolved, bool finds_lr);

}  // namespace welkin::apps
