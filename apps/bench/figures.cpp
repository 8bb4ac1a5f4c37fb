// SPDX-License-Identifier: Apache-2.0
// welkin bench --parallel_figure: figures of docs/results/scaling.md that need a measurement of their own. It starts its ranks
// itself; in a process of such a run it is one of them.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "apps/bench/studies.h"
#include "apps/cli/rank_run.h"
#include "bench/scaling/overlap_bench.h"
#include "bench/scaling/pipeline_bench.h"
#include "bench/scaling/spatial_bench.h"
#include "bench/scaling/tensor_parallel_bench.h"
#include "config/schema/choices.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output_check.h"
#include "core/text.h"
#include "train/device/process_settings.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

struct FigureArguments {
  std::string figure;
  int64_t ranks = 2;
  bench::OverlapProblem problem;
  bench::TensorParallelProblem sections;
  bench::SpatialProblem halos;
  bench::PipelineProblem pipeline;
  std::vector<int64_t> sizes{4096, 65536, int64_t{1} << 20};
  int64_t deadline_s = 120;
  std::string json;
};

nlohmann::ordered_json measured_figure(const FigureArguments& arguments, parallel::World& world, parallel::EmulatedLink* link,
                                       const train::Registries& registries) {
  nlohmann::ordered_json found{{"figure", arguments.figure}, {"ranks", world.size()}};
  if (arguments.figure == "pipeline") {
    found["pass_ms"] = arguments.pipeline.pass_ms;
    found["schedules"] = bench::pipeline_json(bench::measure_pipeline(arguments.pipeline, world));
    return found;
  }
  if (arguments.figure == "sections") {
    found["sequence_parallel"] = arguments.sections.sequence_parallel;
    found.update(bench::link_json(bench::measure_tensor_parallel(arguments.sections, registries.models.at("vit"), world, *link)));
    return found;
  }
  if (arguments.figure == "halos") {
    found.update(bench::link_json(bench::measure_spatial(arguments.halos, registries.models.at("unet3d"), world, *link)));
    return found;
  }
  if (link != nullptr) {
    const bool is_sharded = arguments.problem.shard != config::ShardStage::None;
    const auto measure = is_sharded ? bench::measure_sharded_overlap : bench::measure_overlap;
    if (is_sharded) found["shard"] = config::name_of(arguments.problem.shard);
    found.update(bench::overlap_json(measure(arguments.problem, registries.models.at("vit"), world.world_group(), *link)));
    return found;
  }
  for (const int64_t bytes : arguments.sizes) {
    found["over_c10d"][cat(bytes)] = bench::measure_adapter(world.world_group(), bytes);
  }
  return found;
}

int run_figure_rank(const launch::RankInfo& place, const FigureArguments& arguments, Application& application) {
  label_process(place);
  const train::ProcessSession session(train::one_thread());
  parallel::WorldOptions options = world_options(std::chrono::seconds(arguments.deadline_s));
  const bool has_link = arguments.figure == "overlap" || arguments.figure == "sections" || arguments.figure == "halos";
  if (has_link) options.link = std::make_shared<parallel::EmulatedLink>();
  if (options.link) options.link->bytes_per_second = 1e15;  // until it is set
  parallel::World world = parallel::World::connect(place, options);
  run_as_rank(world, [&] {
    const auto found = measured_figure(arguments, world, options.link.get(), application.registries);
    if (!world.is_main()) return;
    const std::string text = found.dump(2) + "\n";
    application.out << text << std::flush;
    if (!arguments.json.empty()) write_file_atomically(arguments.json, text);
  });
  return 0;
}

}  // namespace

int bench_figures(Application& application, int argc, char** argv) {
  FigureArguments arguments;
  CLI::App app(
      "overlap: the share of the gradient exchange that is hidden behind the backward pass, over an emulated link; sections, "
      "halos: what a link adds to a step under tensor and under spatial parallelism; adapter: a sum by our collectives over one "
      "by c10d alone; pipeline: idle time of each schedule beside its formula, of passes that sleep");
  app.add_option("--parallel_figure", arguments.figure, "figure to measure")
      ->required()
      ->check(CLI::IsMember({"overlap", "sections", "halos", "adapter", "pipeline"}));
  app.add_option("-n,--ranks", arguments.ranks, "ranks to start here")->check(CLI::Range(2, 64))->capture_default_str();
  app.add_option("--width", arguments.problem.vit.width, "overlap, sections: width of the ViT, a multiple of 8")
      ->check(CLI::Range(8, 4096))
      ->capture_default_str();
  app.add_option("--depth", arguments.problem.vit.depth, "overlap, sections: blocks of the ViT")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--samples", arguments.problem.vit.samples, "samples; overlap: per rank; sections: in all")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--bucket_cap_mb", arguments.problem.bucket_cap_mb, "overlap: size of a gradient bucket")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--slower", arguments.problem.slower, "overlap: factor by which the link is slower than Gloo")
      ->check(CLI::Range(1.0, 1000.0))
      ->capture_default_str();
  std::string shard = "none";
  app.add_option("--shard", shard, "overlap: training state sharded over the ranks")
      ->check(CLI::IsMember({"none", "optimizer", "gradients", "full"}))
      ->capture_default_str();
  app.add_option("--link_share", arguments.sections.link_share, "sections, halos: time of the link over time of the computation")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  app.add_option("--edge", arguments.halos.edge, "halos: cells of the box")->check(CLI::Range(16, 1024))->capture_default_str();
  app.add_option("--unet_width", arguments.halos.width, "halos: channels of the first scale")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--scales", arguments.halos.scales, "halos: scales of the U-Net")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_flag("--sequence_parallel", arguments.sections.sequence_parallel, "sections: split tokens outside of the sections");
  app.add_option("--micro_batches", arguments.pipeline.micros, "pipeline: micro-batches per step")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option("--pass_ms", arguments.pipeline.pass_ms, "pipeline: time of a forward pass; a backward pass takes twice as long")
      ->check(CLI::Range(0.1, 1000.0))
      ->capture_default_str();
  app.add_option("--sizes", arguments.sizes, "adapter: sizes in bytes")->delimiter(',')->check(CLI::Range(4, 1 << 30));
  app.add_option("--deadline_s", arguments.deadline_s, "deadline of a call")->check(CLI::Range(1, 86400))->capture_default_str();
  app.add_option("--json", arguments.json, "write the figure to this file")->type_name("FILE");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  arguments.sections.vit = arguments.problem.vit;
  arguments.halos.link_share = arguments.sections.link_share;
  arguments.problem.shard = *config::choice_named<config::ShardStage>(shard);
  const launch::RankInfo place = this_rank_info();
  if (place.rank == 0 && !arguments.json.empty()) check_output("bench", "--json", arguments.json);
  if (place.world_size > 1) return run_figure_rank(place, arguments, application);
  return run_local_ranks(own_command_with("bench", std::vector<std::string>(argv + 1, argv + argc)), arguments.ranks);
}

}  // namespace welkin::apps
