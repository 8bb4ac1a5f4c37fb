// SPDX-License-Identifier: Apache-2.0
#include "apps/train/requests.h"

#include <algorithm>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "core/error.h"
#include "core/text.h"
#include "train/device/device.h"
#include "train/inject/faults.h"

namespace welkin::apps {

std::unique_ptr<train::MemorySnapshot> begin_snapshot(const config::CommandLine& line, const config::Resolved& resolved,
                                                      const launch::RankInfo& place) {
  if (!has_flag(line, "memory_snapshot")) return nullptr;
  const std::string file = text_flag(line, "memory_snapshot");
  const std::string path = place.rank == 0 ? file : cat(file, ".", place.rank);
  const int64_t limit_bytes = train::bytes_of_limit(resolved.config.backend.memory_limit_gib);
  const c10::Device device = train::choose_device(resolved.config.loop.device, place.local_rank);
  return std::make_unique<train::MemorySnapshot>(path, device, limit_bytes);
}

train::interchange::InitialWeights initial_weights(const config::CommandLine& line) {
  for (const char* flag : {"init_map", "init_partial"}) {
    if (!has_flag(line, flag) || has_flag(line, "init_from")) continue;
    throw ConfigError("command line", cat("there are no weights to begin with: --", flag), "Name their file with --init_from");
  }
  return {.renames = train::interchange::parse_renames(text_flag(line, "init_map")), .partial = has_flag(line, "init_partial")};
}

std::optional<train::LrRangeOptions> lr_range_of(const config::CommandLine& line, const config::Resolved& resolved) {
  if (!has_flag(line, "find_lr")) return {};
  if (resolved.config.loop.resume) {
    throw ConfigError("command line", "--find_lr begins a run of its own: it cannot be combined with --resume",
                      "Give the weights of the run with --init_from");
  }
  return train::parse_lr_range(text_flag(line, "find_lr"));
}

// A recorded CUDA graph leaves no loss that could be changed.
std::unique_ptr<train::FaultInjector> faults_of(const config::CommandLine& line, const config::Resolved& resolved,
                                                const launch::RankInfo& place) {
  if (!has_flag(line, "inject")) return nullptr;
  const std::vector<train::Fault> given = train::parse_faults(text_flag(line, "inject"), place.world_size);
  const auto has = [&](train::FaultKind kind) { return std::ranges::find(given, kind, &train::Fault::kind) != given.end(); };
  if (has(train::FaultKind::WrongGradient) && resolved.config.health.recheck_interval == 0) {
    throw ConfigError("inject", "nothing would show a wrong_gradient: recheck_interval=0", "Give --recheck_interval N");
  }
  if (has(train::FaultKind::DropConnection) && place.world_size == 1) {
    throw ConfigError("inject", "a run of one process has no connections that could drop: ranks=1",
                      "Leave drop_connection out, or start several ranks");
  }
  auto faults = std::make_unique<train::FaultInjector>(given, place.rank);
  if (faults->changes_losses() && resolved.config.backend.cuda_graph) {
    throw ConfigError("inject", "a recorded step makes no losses that a fault could change: cuda_graph=true",
                      "Leave cuda_graph, nan_gradient or spike out");
  }
  return faults;
}

void check_elastic(const launch::RankInfo& place, const config::Resolved& resolved, bool finds_lr) {
  if (place.elastic.empty() || !(finds_lr || resolved.config.switches.enable_benchy)) return;
  throw ConfigError("elastic", cat("a measurement needs the same ranks to its end: ", finds_lr ? "--find_lr" : "--enable_benchy"),
                    "Leave --elastic out");
}

}  // namespace welkin::apps
