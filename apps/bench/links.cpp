// SPDX-License-Identifier: Apache-2.0
// welkin bench --collectives: sweeps sizes of every collective over every axis of a mesh. It needs no configuration and starts
// its ranks itself; in a process of such a run (or of another launcher) it is one of them.
#include <CLI/CLI.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "apps/bench/studies.h"
#include "apps/cli/rank_run.h"
#include "bench/scaling/collectives_bench.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output_check.h"
#include "core/text.h"
#include "parallel/mesh/run_mesh.h"
#include "train/device/device.h"
#include "train/device/process_settings.h"

namespace welkin::apps {
namespace {

struct LinkArguments {
  int64_t ranks = 2;
  config::ParallelConfig mesh;
  bench::CollectivesOptions options;
  int64_t deadline_s = 60;
  std::string device = "auto";
  std::string json;
};

void time_links(const parallel::World& world, const LinkArguments& arguments, Application& application) {
  const auto make = [&](const std::string& name, parallel::GroupMembers members) {
    return world.group(name, std::move(members));
  };
  const parallel::MeshGroups groups(make, world.rank(), parallel::mesh_of(arguments.mesh, world.size()));
  const bench::CollectivesReport report = bench::run_collectives_bench(groups, arguments.options);
  if (!world.is_main()) return;
  nlohmann::ordered_json json{{"mode", "collectives"}, {"ranks", world.size()}};
  bench::add_collectives_json(json, report);
  const std::string text = json.dump(2) + "\n";
  application.out << (arguments.json == "-" ? text : bench::collectives_text(report)) << std::flush;
  if (!arguments.json.empty() && arguments.json != "-") write_file_atomically(arguments.json, text);
}

}  // namespace

int bench_collectives(Application& application, int argc, char** argv) {
  LinkArguments arguments;
  bool asked = false;
  CLI::App app("Times every collective over every axis of a mesh, from latency to bandwidth, and fits the ring formula");
  app.add_flag("--collectives", asked, "time the collectives");
  app.add_option("-n,--ranks", arguments.ranks, "number of ranks to start here, if no launcher has started them")
      ->check(CLI::Range(2, 4096))
      ->capture_default_str();
  app.add_option("--tp,--tensor_parallel", arguments.mesh.tensor_parallel, "ranks of the axis tp")->check(CLI::Range(1, 4096));
  app.add_option("--cp,--context_parallel", arguments.mesh.context_parallel, "ranks of the axis cp; the rest is dp")
      ->check(CLI::Range(1, 4096));
  app.add_option("--parallel_order", arguments.mesh.parallel_order, "order of the axes over the ranks, the first fastest")
      ->capture_default_str();
  app.add_option("--sizes", arguments.options.sizes, "bytes of the whole tensor")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{4}, int64_t{1} << 32));
  app.add_option("--seconds", arguments.options.seconds, "seconds per collective, axis and size; at least three calls")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--device", arguments.device, "device of the tensors: cuda uses NCCL, cpu uses Gloo")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--deadline_s", arguments.deadline_s, "deadline of a call")->check(CLI::Range(1, 86400))->capture_default_str();
  app.add_option("--json", arguments.json, "write times and calibration to this file; - prints them instead of the text")
      ->type_name("FILE");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  const launch::RankInfo place = this_rank_info();
  if (place.rank == 0 && !arguments.json.empty() && arguments.json != "-") check_output("bench", "--json", arguments.json);
  if (place.world_size == 1) {
    parallel::mesh_of(arguments.mesh, arguments.ranks);  // refused here once, not by every rank
    return run_local_ranks(own_command_with("bench", std::vector<std::string>(argv + 1, argv + argc)), arguments.ranks);
  }
  label_process(place);
  const train::ProcessSession session(train::one_thread());
  arguments.options.device = train::choose_device(train::device_named(arguments.device), place.local_rank, place.local_size);
  parallel::WorldOptions options = world_options(std::chrono::seconds(arguments.deadline_s));
  options.with_gpu = arguments.options.device.is_cuda();
  parallel::World world = parallel::World::connect(place, options);
  run_as_rank(world, [&] { time_links(world, arguments, application); });
  return 0;
}

}  // namespace welkin::apps
