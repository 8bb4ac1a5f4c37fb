// SPDX-License-Identifier: Apache-2.0
// welkin plan schedule: shows which rank of a pipeline runs which pass when, as text and as a picture.
#include <CLI/CLI.hpp>
#include <ostream>
#include <string>

#include "apps/cli/verbs.h"
#include "core/file.h"
#include "parallel/pipeline/schedule_picture.h"

namespace welkin::apps {
namespace {

struct ScheduleArguments {
  std::string schedule = "1f1b", gradient = "all";
  parallel::PipelineShape shape{.ranks = 4, .micros = 8, .chunks = 0};
  std::string svg;
};

constexpr int64_t kMostRanks = 1 << 10, kMostMicros = 1 << 12, kMostChunks = 1 << 8, kMostLeads = 1 << 8;

}  // namespace

int verb_plan_schedule(Application& application, int argc, char** argv) {
  ScheduleArguments arguments;
  CLI::App app(
      "Prints the passes of a pipeline: a row per rank, a column per unit of time, where a forward pass, a backward pass by "
      "the input and one by the weights take one unit each");
  app.add_option("--pipeline_parallel", arguments.shape.ranks, "ranks of the pipeline")
      ->check(CLI::Range(int64_t{1}, kMostRanks))
      ->capture_default_str();
  app.add_option("--micro_batches", arguments.shape.micros, "micro-batches of a step")
      ->check(CLI::Range(int64_t{1}, kMostMicros))
      ->capture_default_str();
  app.add_option("--pipeline_schedule", arguments.schedule, "order of the passes")
      ->check(CLI::IsMember({"gpipe", "1f1b", "interleaved", "zero_bubble"}))
      ->capture_default_str();
  app.add_option("--pipeline_chunks", arguments.shape.chunks, "parts of the model per rank (interleaved: 2, else 1)")
      ->check(CLI::Range(int64_t{1}, kMostChunks));
  app.add_option("--multistep", arguments.shape.leads, "steps of the model that a sample is trained for")
      ->check(CLI::Range(int64_t{1}, kMostLeads))
      ->capture_default_str();
  app.add_option("--multistep_gradient", arguments.gradient, "which of them have a gradient")
      ->check(CLI::IsMember({"all", "last"}))
      ->capture_default_str();
  app.add_option("--svg", arguments.svg, "write the picture to this file, to scale");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  const auto kind = config::choice_named<config::PipelineSchedule>(arguments.schedule).value();
  if (arguments.shape.chunks == 0) arguments.shape.chunks = kind == config::PipelineSchedule::Interleaved ? 2 : 1;
  arguments.shape.only_last = arguments.gradient == "last" && arguments.shape.leads > 1;
  const parallel::Schedule schedule = parallel::make_schedule(kind, arguments.shape);
  application.out << parallel::schedule_text(schedule);
  if (!arguments.svg.empty()) write_file_atomically(arguments.svg, parallel::schedule_svg(schedule));
  return 0;
}

}  // namespace welkin::apps
