// SPDX-License-Identifier: Apache-2.0
// welkin verify --layouts: compares every layout that fits a number of ranks with one process. It starts the processes itself,
// once per number of ranks, and gives one verdict for all of them. In a process of such a run (or of `welkin launch`) it is one
// of the ranks.
#include "apps/verify/layouts.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "apps/cli/rank_run.h"
#include "apps/cli/verbs.h"
#include "apps/verify/layout_rank.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "train/device/device.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

constexpr int kEndedBySignal = 128;  // exit codes above it, as a shell counts

int run_worlds(const LayoutArguments& arguments, std::vector<std::string> words, Application& application) {
  int verdict = 0;
  if (!arguments.seed) words.insert(words.end(), {"--seed", cat(std::random_device()())});
  for (const int64_t world : arguments.worlds) {
    const Stopwatch watch;
    const int code = run_local_ranks(own_command_with("verify", words), world);
    application.out << world << " ranks: " << (code == 0 ? "every layout equals one process" : "FAILED") << " ("
                    << std::lround(watch.seconds()) << " s)\n"
                    << std::flush;
    if (code > kEndedBySignal) return code;  // somebody wants it to end
    if (verdict == 0) verdict = code;
  }
  return verdict;
}

}  // namespace

int verify_layouts(Application& application, int argc, char** argv) {
  LayoutArguments arguments;
  CLI::App app("Trains a small model in float64 under every layout that fits the ranks and compares it with one process");
  app.add_option("--layouts", arguments.choice,
                 "some: two per mesh; pairs: every mesh, and all pairs of sizes and options; all: the product")
      ->expected(0, 1)
      ->default_str("pairs")
      ->check(CLI::IsMember({"some", "pairs", "all"}));
  app.add_option("--world", arguments.worlds, "numbers of ranks, each started here")
      ->delimiter(',')
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  app.add_option("--model", arguments.model, "a model that has a plan")->capture_default_str();
  app.add_option("--deadline_s", arguments.deadline_s, "deadline of a collective; then all ranks stop and name the missing ones")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("--hang-rank", arguments.hang_rank, "this rank waits at its start for a debugger");
  app.add_option("--device", arguments.device, "device of the ranks: cpu, cuda or auto")->capture_default_str();
  app.add_option("--sample", arguments.sample,
                 cat("layouts drawn at random from the full product, beside the others (pairs: ", kSample, ")"))
      ->check(CLI::Range(0, 1000000));
  app.add_option("--seed", arguments.seed, "seed of the sample; default: random, and printed");
  app.add_option("--checkpoint_folder", arguments.checkpoint_folder,
                 "folder for checkpoints between layouts; shared by all ranks")
      ->capture_default_str();
  if (!parse_arguments(application, app, argc, argv)) return 0;
  train::device_named(arguments.device);
  application.registries.plans.at(arguments.model);
  const launch::RankInfo place = this_rank_info();
  if (place.world_size > 1) return verify_on_rank(place, arguments, application);
  return run_worlds(arguments, std::vector<std::string>(argv + 1, argv + argc), application);
}

}  // namespace welkin::apps
