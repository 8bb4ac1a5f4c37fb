// SPDX-License-Identifier: Apache-2.0
// A rank of an elastic job: one process takes part in round after round, with the ranks that are there.
#pragma once

#include <functional>
#include <string>

#include "config/resolve/resolve.h"
#include "core/process/signals.h"
#include "launch/ranks.h"
#include "parallel/comm/world.h"
#include "train/elastic/elastic_round.h"

namespace welkin::apps {

// How this process's part in a round ended.
struct RoundEnd {
  bool is_done = false;  // the run is over
  int code = 0;          // exit code, if the run is over
  std::string why = {};  // otherwise: why it leaves the round
};

// Arguments of a round. `end` shuts down its connections before anything that uses them is destroyed.
struct RoundCall {
  const launch::RankInfo& place;
  const config::Resolved& resolved;
  parallel::World& world;
  train::ElasticRound& round;
  std::function<void()> end;
  std::function<bool()> is_over;
};
using RunRound = std::function<RoundEnd(const RoundCall&)>;
// The options with which the ranks of a round meet, from its configuration.
using OptionsOf = std::function<parallel::WorldOptions(const config::RunConfig&)>;

// The number of ranks that the configuration of an elastic job is resolved for.
int64_t ranks_of_job(const launch::RankInfo& started);
// True if a launcher (ours, torchrun) started this process in the place of a lost one.
bool is_started_again(const launch::RankInfo& started);

// Runs rounds until the run is over, or a signal other than SIGUSR1 comes while this process waits. `resolved`: for
// ranks_of_job(). Returns the exit code. ConfigError if the limits allow no other number of ranks, CommError if the launcher's
// board is gone.
int run_elastic_rank(const launch::RankInfo& started, const config::Resolved& resolved, const OptionsOf& options_of,
                     const InterruptWatch& interrupt, const RunRound& run_round);

// A rank's work in a round, between World::connect and World::close. `body` returns true when the run is over, false when the
// ranks have agreed to part. A failed exchange ends the round; another error of the rank ends its process, as in run_as_rank().
RoundEnd run_as_member(const RoundCall& call, const std::function<bool()>& body, const std::function<void(const char*)>& report);

}  // namespace welkin::apps
