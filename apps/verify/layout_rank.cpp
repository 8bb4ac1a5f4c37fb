// SPDX-License-Identifier: Apache-2.0
#include "apps/verify/layout_rank.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <iomanip>
#include <ostream>
#include <random>
#include <sstream>

#include "apps/cli/rank_run.h"
#include "core/error.h"
#include "core/text.h"
#include "ops/attention/attention_backend.h"
#include "train/checkpoint/shared_checkpoint.h"
#include "train/device/device.h"
#include "train/device/process_settings.h"
#include "train/learn/registries.h"
#include "verify/layouts/layout_check.h"

namespace welkin::apps {
namespace {

int64_t sample_of(const LayoutArguments& arguments) {
  return arguments.sample.value_or(arguments.choice == "pairs" ? kSample : 0);
}

verify::LayoutChoice choice_named(const std::string& name) {
  if (name == "some") return verify::LayoutChoice::Some;
  return name == "all" ? verify::LayoutChoice::All : verify::LayoutChoice::Pairs;
}

std::string report_line(const verify::LayoutReport& report) {
  std::ostringstream line;
  if (!report.refused.empty()) return cat("n/a   ", report.text(), ": ", report.refused);
  line << (report.passed() ? "ok    " : "FAIL  ") << std::scientific << std::setprecision(1) << report.worst << "  "
       << report.text();
  if (!report.passed()) line << ": " << report.worst_name;
  return line.str();
}

}  // namespace

int verify_on_rank(const launch::RankInfo& place, const LayoutArguments& arguments, Application& application) {
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
    const auto is_refused = [&subject](const verify::LayoutCase& c) { return !refusal_of(subject, c).empty(); };
    auto cases = verify::layout_cases(place.world_size, choice_named(arguments.choice), axes, is_refused);
    auto possible = cases;
    std::erase_if(possible, is_refused);
    const auto moves = verify::layout_moves(possible);
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

}  // namespace welkin::apps
