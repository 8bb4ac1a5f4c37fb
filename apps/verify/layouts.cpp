// SPDX-License-Identifier: Apache-2.0
// welkin verify --layouts: every layout that fits a number of ranks, against one process. It starts the processes itself, once
// per number of ranks, and gives one verdict for all of them; in a process of such a run (or of `welkin launch`) it is one of
// them.
#include "apps/verify/layouts.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <iomanip>
#include <optional>
#include <ostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "apps/cli/rank_run.h"
#include "apps/cli/verbs.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "ops/attention/attention_backend.h"
#include "train/checkpoint/shared_checkpoint.h"
#include "train/device/device.h"
#include "train/device/process_settings.h"
#include "train/learn/registries.h"
#include "verify/layouts/layout_check.h"

namespace welkin::apps {
namespace {

struct LayoutArguments {
  std::string choice = "pairs";
  std::vector<int64_t> worlds{2, 4, 8};
  std::string model = "vit";
  int64_t deadline_s = 60;
  int64_t hang_rank = -1;
  std::string device = "cpu";
  std::optional<int64_t> sample;  // nothing: kSample beside pairs
  std::optional<uint64_t> seed;   // nothing: another one each time
  std::string checkpoint_folder = std::filesystem::temp_directory_path().string();
};

constexpr int64_t kSample = 24;

int64_t sample_of(const LayoutArguments& arguments) {
  return arguments.sample.value_or(arguments.choice == "pairs" ? kSample : 0);
}

verify::LayoutChoice choice_named(const std::string& name) {
  if (name == "some") return verify::LayoutChoice::Some;
  return name == "all" ? verify::LayoutChoice::All : verify::LayoutChoice::Pairs;
}

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

std::string report_line(const verify::LayoutReport& report) {
  std::ostringstream line;
  if (!report.refused.empty()) return cat("n/a   ", report.text(), ": ", report.refused);
  line << (report.passed() ? "ok    " : "FAIL  ") << std::scientific << std::setprecision(1) << report.worst << "  "
       << report.text();
  if (!report.passed()) line << ": " << report.worst_name;
  return line.str();
}

int run_rank(const launch::RankInfo& place, const LayoutArguments& arguments, Application& application) {
  const c10::Device device = train::choose_device(train::device_named(arguments.device), place.local_rank, place.local_size);
  const train::ProcessSession session(train::one_thread());
  if (device.is_cuda()) ops::set_exact_attention();
  parallel::WorldOptions how = world_options(std::chrono::seconds(arguments.deadline_s));
  how.with_gpu = device.is_cuda();
  parallel::World world = parallel::World::connect(place, how);
  if (place.rank == arguments.hang_rank) {
    application.err << "rank " << place.rank << " waits for a debugger: gdb -p " << getpid() << "\n" << std::flush;
    raise(SIGSTOP);
  }
  const verify::LayoutRanks ranks{
      .rank = place.rank,
      .make_group = [&](const std::string& name,
                        parallel::GroupMembers members) { return world.group(name, std::move(members)); },
      .device = device,
      .world = world.world_group()};
  const bool is_main = place.rank == 0;
  int64_t failed = 0, passed = 0;
  try {
    const verify::LayoutSubject subject{application.registries.models.at(arguments.model),
                                        application.registries.plans.at(arguments.model)};
    const auto seed = static_cast<uint64_t>(
        train::told_by_first(ranks.world, static_cast<int64_t>(arguments.seed.value_or(std::random_device()()))));
    const parallel::AxisSet axes = verify::axes_of(subject);
    auto cases = verify::layout_cases(place.world_size, choice_named(arguments.choice), axes);
    const auto moves = verify::layout_moves(cases);
    const auto sample = verify::sampled_cases(place.world_size, sample_of(arguments), seed, axes, cases);
    cases.insert(cases.end(), sample.begin(), sample.end());
    if (is_main && !sample.empty()) {
      application.out << "Random sample: " << sample.size() << " layouts, --sample " << sample_of(arguments) << " --seed " << seed
                      << "\n"
                      << std::flush;
    }
    const auto report = [&](const verify::LayoutReport& one) {
      if (one.refused.empty()) ++(one.passed() ? passed : failed);
      if (is_main) application.out << report_line(one) << "\n" << std::flush;
    };
    check_layouts(subject, ranks, cases, report);
    const int64_t process = train::told_by_first(ranks.world, getpid());
    check_moves(subject, ranks, moves, std::filesystem::path(arguments.checkpoint_folder) / cat("welkin-layouts-", process),
                report);
  } catch (const std::exception& error) {
    world.announce_stop(error.what());
    throw;
  }
  world.close();
  return failed == 0 && passed > 0 ? 0 : static_cast<int>(ExitCode::Other);
}

}  // namespace

int verify_layouts(Application& application, int argc, char** argv) {
  LayoutArguments arguments;
  CLI::App app("Trains a small model in float64 under every layout that fits the ranks and compares it with one process");
  app.add_option("--layouts", arguments.choice, "some: two per mesh; pairs: all pairs of options on every mesh; all: the product")
      ->expected(0, 1)
      ->default_str("pairs")
      ->check(CLI::IsMember({"some", "pairs", "all"}));
  app.add_option("--world", arguments.worlds, "numbers of ranks, each started here")
      ->delimiter(',')
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  app.add_option("--model", arguments.model, "a model that has a plan")->capture_default_str();
  app.add_option("--deadline_s", arguments.deadline_s, "of a collective; then all ranks stop and name the missing ones")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("--hang-rank", arguments.hang_rank, "this rank waits at its start for a debugger");
  app.add_option("--device", arguments.device, "of the ranks: cpu, cuda or auto")->capture_default_str();
  app.add_option("--sample", arguments.sample,
                 cat("layouts drawn at random from the full product, beside the others (pairs: ", kSample, ")"))
      ->check(CLI::Range(0, 1000000));
  app.add_option("--seed", arguments.seed, "of the sample; without it another one each time, which is printed");
  app.add_option("--checkpoint_folder", arguments.checkpoint_folder,
                 "where checkpoints go from one layout to another; all ranks see it")
      ->capture_default_str();
  if (!parse_arguments(application, app, argc, argv)) return 0;
  train::device_named(arguments.device);
  application.registries.plans.at(arguments.model);
  const launch::RankInfo place = this_rank_info();
  if (place.world_size > 1) return run_rank(place, arguments, application);
  return run_worlds(arguments, std::vector<std::string>(argv + 1, argv + argc), application);
}

}  // namespace welkin::apps
