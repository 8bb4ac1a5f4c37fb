// SPDX-License-Identifier: Apache-2.0
// For verbs that run on several processes: starts them here, or joins them as one rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "core/error.h"
#include "launch/ranks.h"
#include "parallel/comm/connection.h"
#include "parallel/comm/world.h"

namespace welkin::apps {

// This process's place; a world of one where no launcher started it.
launch::RankInfo this_rank_info();

// ConfigError if a launcher started several processes of a verb for one process: each would do all of the work.
void need_one_process(const std::string& verb);

// From here on errors of a rank name it, with its mesh coordinates once the configuration is known. A single process has no
// label. Call it before threads exist.
void label_process(const launch::RankInfo& place);
void label_process(const launch::RankInfo& place, const config::ParallelConfig& config);

// This process's own command up to its verb, with the program as a full path, then `arguments`.
std::vector<std::string> own_command_with(const std::string& verb, const std::vector<std::string>& arguments);

// Starts the command `num_ranks` times on this machine over the loopback interface, one thread each. Returns the exit code.
int run_local_ranks(const std::vector<std::string>& command, int64_t num_ranks);

// ConnectOptions::on_hang of a program: reports the hanging call on standard error and ends this process with ExitCode::Comm.
void end_hanging_rank(const std::string& what);

// Joins the run of which this process is a rank.
std::unique_ptr<parallel::Connection> connect_rank(const launch::RankInfo& place, int64_t deadline_s);

// True if `is_so_here` is true on any rank; every rank calls it.
bool is_so_anywhere(const parallel::World& world, bool is_so_here);

// Sums element by element over the ranks; every rank calls it with as many values.
std::vector<double> summed_over_ranks(const parallel::World& world, const std::vector<double>& values);

// Options of ranks that meet without a configuration.
parallel::WorldOptions world_options(std::chrono::milliseconds timeout);
// Options of the ranks of a run with this configuration.
parallel::WorldOptions world_options(const config::RunConfig& config);

// A rank that stops tells the others why, so that their errors name it. It ends at once: destructors of a broken connection may
// wait for ranks that are gone. The text goes to `report`, or to stderr where that is empty.
[[noreturn]] void stop_rank(const parallel::World& world, const std::function<void(const char*)>& report, const char* what,
                            ExitCode code);

// A rank's work between World::connect and World::close. An error on one of several ranks is announced to the others, goes to
// `report` (to stderr where that is empty). It ends the process at once with the error's code.
void run_as_rank(parallel::World& world, const std::function<void()>& body, const std::function<void(const char*)>& report = {});

}  // namespace welkin::apps
