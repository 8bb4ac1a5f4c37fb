// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/rank_run.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "config/print/print.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/job_secret.h"
#include "launch/program.h"
#include "launch/sockets.h"
#include "launch/workers.h"
#include "parallel/comm/collectives.h"
#include "parallel/mesh/run_mesh.h"
#include "train/device/device.h"

namespace welkin::apps {
namespace {

const char* variable(const char* name) { return std::getenv(name); }

parallel::SharedMemory wanted_shared_memory() {
  const char* said = variable("WELKIN_SHARED_MEMORY");
  const std::string choice = said != nullptr ? said : "auto";
  if (choice == "auto") return parallel::SharedMemory::Auto;
  if (choice == "buffers") return parallel::SharedMemory::Buffers;
  if (choice == "off") return parallel::SharedMemory::Off;
  throw ConfigError("launch", cat("no way for ranks of one host to exchange data: WELKIN_SHARED_MEMORY=", choice),
                    "Choose auto, buffers, which reads no other process's memory, or off, which takes TCP");
}

}  // namespace

launch::RankInfo this_rank_info() { return launch::find_ranks(variable); }

void need_one_process(const std::string& verb) {
  const launch::RankInfo place = this_rank_info();
  if (place.world_size == 1) return;
  throw ConfigError(verb, cat("one process runs this verb: ranks=", place.world_size, ", launcher=", place.launcher),
                    "Start it once, without a launcher");
}

void label_process(const launch::RankInfo& place) {
  if (place.world_size > 1) set_process_label(cat("rank ", place.rank));
}

void label_process(const launch::RankInfo& place, const config::ParallelConfig& config) {
  if (place.world_size == 1) return;
  set_process_label(cat("rank ", place.rank, ", ", parallel::mesh_of(config, place.world_size).coordinates_text(place.rank)));
}

std::vector<std::string> own_command_with(const std::string& verb, const std::vector<std::string>& arguments) {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) {
    words.push_back(word);
    if (word == verb) break;
  }
  WELKIN_CHECK(words.size() > 1 && words.back() == verb, "the command line names its verb");
  words.front() = std::filesystem::canonical("/proc/self/exe").string();
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

int run_local_ranks(const std::vector<std::string>& command, int64_t num_ranks) {
  const launch::Listener listener = launch::listen_at("127.0.0.1", 0);
  launch::WorkerPlan plan;
  plan.command = command;
  plan.num_local = num_ranks;
  plan.master_port = listener.port;
  plan.listener = listener.socket.get();
  plan.environment = {{"OMP_NUM_THREADS", "1"}, {"GOMP_SPINCOUNT", "0"}};
  plan.prefix = false;
  return launch::run_workers(plan);
}

void end_hanging_rank(const std::string& what) {
  std::cerr << cat("welkin: ", what, "\n") << std::flush;
  _exit(static_cast<int>(ExitCode::Comm));
}

std::unique_ptr<parallel::Connection> connect_rank(const launch::RankInfo& place, int64_t deadline_s) {
  return parallel::Connection::open({.rank = place.rank,
                                     .world_size = place.world_size,
                                     .host = place.master_address,
                                     .port = static_cast<uint16_t>(place.master_port),
                                     .listen_fd = static_cast<int>(place.listen_descriptor),
                                     .store_is_served = place.store_is_served,
                                     .secret = launch::job_secret(variable),
                                     .deadline = std::chrono::seconds(deadline_s),
                                     .on_hang = end_hanging_rank});
}

bool is_so_anywhere(const parallel::World& world, bool is_so_here) {
  const at::Tensor count = at::full({1}, int64_t{is_so_here}, at::kLong);
  return parallel::all_reduce(world.world_group(), count, parallel::Reduction::Max).item<int64_t>() != 0;
}

std::vector<double> summed_over_ranks(const parallel::World& world, const std::vector<double>& values) {
  const at::Tensor sums = parallel::all_reduce(world.world_group(), at::tensor(values, at::kDouble));
  return {sums.data_ptr<double>(), sums.data_ptr<double>() + sums.numel()};
}

parallel::WorldOptions world_options(std::chrono::milliseconds timeout) {
  parallel::WorldOptions options;
  options.timeout = timeout;
  options.program = launch::program_hash();
  options.secret = launch::job_secret(variable);
  if (const char* name = std::getenv("GLOO_SOCKET_IFNAME")) options.interface = name;
  options.on_hang = end_hanging_rank;
  options.shared_memory = wanted_shared_memory();
  return options;
}

parallel::WorldOptions world_options(const config::RunConfig& config) {
  parallel::WorldOptions options = world_options(std::chrono::seconds(config.parallel.comm_timeout_s));
  options.store = config.parallel.wireup_store;
  options.configuration = config::yaml(config);
  const launch::RankInfo place = this_rank_info();
  options.with_gpu =
      place.world_size > 1 && train::choose_device(config.loop.device, place.local_rank, place.local_size).is_cuda();
  return options;
}

void stop_rank(const parallel::World& world, const std::function<void(const char*)>& report, const char* what, ExitCode code) {
  if (code != ExitCode::Comm) world.announce_stop(what);  // a failed exchange is the fault of another rank
  if (report) {
    report(what);
  } else {
    std::cerr << "welkin: " << what << std::endl;
  }
  std::cout.flush();
  _exit(static_cast<int>(code));
}

void run_as_rank(parallel::World& world, const std::function<void()>& body, const std::function<void(const char*)>& report) {
  if (world.size() == 1) return body();
  try {
    body();
    world.close();
  } catch (const Error& error) {
    stop_rank(world, report, error.what(), error.exit_code());
  } catch (const std::exception& error) {
    stop_rank(world, report, error.what(), ExitCode::Other);
  }
}

}  // namespace welkin::apps
