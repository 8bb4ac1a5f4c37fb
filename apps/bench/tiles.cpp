// SPDX-License-Identifier: Apache-2.0
// welkin bench --tiles: measures what a partly filled last tile costs on this machine. It needs no configuration.
#include <CLI/CLI.hpp>
#include <map>
#include <ostream>
#include <string>

#include "apps/bench/studies.h"
#include "bench/step/tile_sweep.h"
#include "config/schema/run_config.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output_check.h"
#include "core/text.h"
#include "train/device/device.h"
#include "train/device/process_settings.h"

namespace welkin::apps {
namespace {

const std::map<std::string, at::ScalarType> kTileTypes{{"fp32", at::kFloat}, {"bf16", at::kBFloat16}, {"fp16", at::kHalf}};

struct TileArguments {
  std::string device = "auto", type = "fp32", tile, json, plot;
  int64_t threads = 1;
  bench::TileProblem problem;
};

bench::TileProblem tile_problem(const TileArguments& arguments, c10::Device device) {
  bench::TileProblem problem = arguments.problem;
  problem.dtype = kTileTypes.at(arguments.type);
  problem.tile = bench::usual_tile(device);
  if (!arguments.tile.empty()) {
    const auto named = bench::parse_tile(arguments.tile);
    if (!named) throw ConfigError("bench", cat("not a tile: --tile=", arguments.tile), "Give rows and columns, such as 256x128");
    problem.tile = *named;
  }
  if (problem.n.empty()) problem.n = bench::usual_sizes(problem.tile);
  return problem;
}

}  // namespace

int bench_tiles(Application& application, int argc, char** argv) {
  TileArguments arguments;
  bool asked = false;
  CLI::App app("Times matmuls (m, k) x (k, n) for a series of n: rate, time, and tiles of the result");
  app.add_flag("--tiles", asked, "time matmuls of varied size");
  const auto size = CLI::Range(int64_t{1}, int64_t{1} << 16);  // a matrix of 16 GiB
  app.add_option("-m", arguments.problem.m, "rows of the result")->check(size)->capture_default_str();
  app.add_option("-k", arguments.problem.k, "inner dimension, summed over")->check(size)->capture_default_str();
  app.add_option("-n", arguments.problem.n, "columns of the result, one matmul each; without it half a tile to twelve")
      ->delimiter(',')
      ->check(size);
  app.add_option("--tile", arguments.tile, "tile, ROWSxCOLUMNS; default: 256x128 on a GPU, 1x16 on a CPU");
  app.add_option("--type", arguments.type, "type of the elements")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}))
      ->capture_default_str();
  app.add_option("--device", arguments.device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
  app.add_option("--threads", arguments.threads, "CPU threads; 0: all cores")->check(CLI::Range(0, 4096))->capture_default_str();
  app.add_option("--seconds", arguments.problem.seconds, "seconds for each n; at least three matmuls")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--json", arguments.json, "write the figures to this file; - prints them instead of the text")
      ->type_name("FILE");
  app.add_option("--plot", arguments.plot, "write the picture to this file, as SVG")->type_name("FILE");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  if (arguments.json != "-" && !arguments.json.empty()) check_output("bench", "--json", arguments.json);
  if (!arguments.plot.empty()) check_output("bench", "--plot", arguments.plot);
  config::RunConfig config;
  config.loop.threads = arguments.threads;
  const c10::Device device = train::choose_device(train::device_named(arguments.device));
  const train::ProcessSession session(config, device);
  const bench::TileProblem problem = tile_problem(arguments, device);
  const auto rows = bench::measure_tiles(problem, device);
  const std::string json = bench::tiles_json(problem, rows).dump(2) + "\n";
  application.out << (arguments.json == "-" ? json : bench::tiles_text(problem, rows)) << std::flush;
  if (!arguments.json.empty() && arguments.json != "-") write_file_atomically(arguments.json, json);
  if (!arguments.plot.empty()) write_file_atomically(arguments.plot, bench::tiles_svg(problem, rows));
  return 0;
}

}  // namespace welkin::apps
