// SPDX-License-Identifier: Apache-2.0
#include "train/coupling/hosted_run.h"

#include <cstdlib>
#include <optional>

#include "core/duration.h"
#include "observe/log/console.h"
#include "observe/log/run_log.h"
#include "parallel/comm/world.h"
#include "train/device/peak_cache.h"
#include "train/run/trainer.h"

namespace welkin::train {
namespace {

// Another program starts the run, so no batch system says when it ends.
std::optional<TimeLimit> own_time_limit(const config::LoopConfig& config) {
  const auto seconds = parse_duration_s(config.time_limit);
  if (!seconds) return {};
  return TimeLimit(static_cast<double>(*seconds), static_cast<double>(config.time_limit_margin), "time_limit");
}

}  // namespace

RunOutcome run_hosted(const HostedRun& run) {
  observe::Console console({.fd = -1});
  observe::RunLog log(console);
  const parallel::World world;
  const TrainerContext context{.resolved = run.resolved,
                               .registries = run.registries,
                               .console = console,
                               .log = log,
                               .interrupt = run.interrupt,
                               .world = world,
                               .resume_command = {},
                               .init_from = run.init_from,
                               .time_limit = own_time_limit(run.resolved.config.loop),
                               .peak_file = peak_file(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME")),
                               .listener = run.listener,
                               .say_now = [&](const std::string& text) {
                                 log.warning(text);
                                 if (run.warn) run.warn(text);
                               }};
  return Trainer(context).run();
}

}  // namespace welkin::train
