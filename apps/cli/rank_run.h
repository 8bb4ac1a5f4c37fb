// SPDX-License-Identifier: Apache-2.0
// For verbs that run on several processes: starting them here, and being one of them.
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

// ConfigError where a launcher has started several of a verb that one process runs: each would do all of it.
void need_one_process(const std::string& verb);

// Errors of a rank name it from here on, with its coordinates on the mesh once the configuration is known. A process alone has no
// label. Before threads exist.
void label_process(const launch::RankInfo& place);
void label_process(const launch::RankInfo& place, const config::ParallelConfig& config);

// The words of this process's own command up to its verb, the program as a full path, then `arguments`.
std::vector<std::string> own_command_with(const std::string& verb, const std::vector<std::string>& arguments);

// Starts the command `num_ranks` times on this machine over the loopback interface, one thread each; the exit code of the run.
int run_local_ranks(const std::vector<std::string>& command, int64_t num_ranks);

// ConnectOptions::on_hang of a program: says what hangs on standard error and ends this process, code of a failed exchange.
void end_hanging_rank(const std::string& what);

// Joins the run that this process is a rank of.
std::unique_ptr<parallel::Connection> connect_rank(const launch::RankInfo& place, int64_t deadline_s);

// Whether it is so on any rank; every rank calls it.
bool is_so_anywhere(const parallel::World& world, bool is_so_here);

// Element by element; every rank calls it with as many.
std::vector<double> summed_over_ranks(const parallel::World& world, const std::vector<double>& values);

// How ranks meet that need no configuration.
parallel::WorldOptions world_options(std::chrono::milliseconds timeout);
// How the ranks of a run of this configuration meet.
parallel::WorldOptions world_options(const config::RunConfig& config);

// A rank that stops tells the others why, so that theirs name it, and ends at once: destructors of a broken connection may wait
// for ranks that are gone. Says it by `report`, on stderr where that is empty.
[[noreturn]] void stop_rank(const parallel::World& world, const std::function<void(const char*)>& report, const char* what,
                            ExitCode code);

// What a rank does between World::connect and World::close. An error on one of several ranks is announced to the others, said by
// `report` (on stderr where that is empty), and ends the process at once with the error's code.
void run_as_rank(parallel::World& world, const std::function<void()>& body, const std::function<void(const char*)>& report = {});

}  // namespace welkin::apps
