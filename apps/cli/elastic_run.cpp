// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/elastic_run.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "apps/cli/rank_run.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/elastic/round.h"
#include "launch/job_secret.h"
#include "parallel/elastic/elastic_member.h"
#include "parallel/elastic/round_watch.h"

namespace welkin::apps {
namespace {

config::Resolved resolved_for(const config::Resolved& full, int64_t ranks, bool has_begun) {
  config::Resolved resolved = full;
  resolved.config = train::config_for(std::move(resolved.config), ranks);
  resolved.config.loop.resume = resolved.config.loop.resume || has_begun;
  return resolved;
}

RoundEnd run_one_round(const launch::RankInfo& place, const config::Resolved& resolved, parallel::WorldOptions options,
                       train::ElasticRound& round, parallel::RoundWatch& watch, const RunRound& run_round) {
  options.is_over = [&watch] { return watch.is_over(); };
  try {
    parallel::World world = parallel::World::connect(place, options);
    return run_round({.place = place,
                      .resolved = resolved,
                      .world = world,
                      .round = round,
                      .end = [&watch] { watch.end(); },
                      .is_over = options.is_over});
  } catch (const CommError& error) {
    watch.end();
    return {.is_done = false, .code = 0, .why = error.what()};
  }
}

}  // namespace

int64_t ranks_of_job(const launch::RankInfo& started) { return launch::parse_limits(started.elastic).most; }

bool is_started_again(const launch::RankInfo& started) {
  const auto id = launch::parse_process_id(started.elastic_id);
  return (id && id->start > 0) || started.attempt > 0;
}

int run_elastic_rank(const launch::RankInfo& started, const config::Resolved& resolved, const OptionsOf& options_of,
                     const InterruptWatch& interrupt, const RunRound& run_round) {
  const launch::ElasticLimits limits = launch::parse_limits(started.elastic);
  train::check_elastic_sizes(resolved.config, limits.least, limits.most);
  const std::string secret = launch::job_secret([](const char* name) { return std::getenv(name); });
  parallel::ElasticMember member(started, secret, std::chrono::seconds(resolved.config.parallel.comm_timeout_s));
  member.say_hello(train::sizes_of_run(resolved.config, 1, limits.most));
  train::ElasticRound round{.run_size = limits.most};
  round.say_begun = [&member] { member.say_begun(); };
  // SIGUSR1 does not end a waiting rank: the round saves, and the first rank has the job queued again.
  const auto is_stopped = [&interrupt] { return interrupt.requested() && interrupt.signal_number() != SIGUSR1; };
  while (const auto next = member.await_round(is_stopped)) {
    const launch::RankInfo place = parallel::place_in(*next, started, member.id());
    const config::Resolved own = resolved_for(resolved, place.world_size, next->has_begun);
    label_process(place, own.config.parallel);
    std::optional<parallel::RoundWatch> watch(std::in_place, member.board_place(), *next, member.id());
    round.number = next->number;
    round.has_begun = next->has_begun;
    round.note = next->note;
    round.is_requested = [&watch] { return watch->is_requested(); };
    const RoundEnd end = run_one_round(place, own, options_of(own.config), round, *watch, run_round);
    watch.reset();  // shuts down connections that are made from here on
    if (end.is_done) return end.code;
    if (place.rank == 0) std::cerr << cat("welkin: round ", next->number, " is left: ", end.why, "\n") << std::flush;
    member.leave(*next, end.why);
  }
  return 0;
}

RoundEnd run_as_member(const RoundCall& call, const std::function<bool()>& body, const std::function<void(const char*)>& report) {
  try {
    if (!body()) return {.is_done = false, .code = 0, .why = "others wait to join"};
    if (call.world.size() > 1) call.world.close();
    return {.is_done = true};
  } catch (const CommError& error) {
    return {.is_done = false, .code = 0, .why = error.what()};
  } catch (const Error& error) {
    if (call.is_over()) return {.is_done = false, .code = 0, .why = error.what()};
    stop_rank(call.world, report, error.what(), error.exit_code());
  } catch (const std::exception& error) {
    if (call.is_over()) return {.is_done = false, .code = 0, .why = error.what()};
    stop_rank(call.world, report, error.what(), ExitCode::Other);
  }
}

}  // namespace welkin::apps
