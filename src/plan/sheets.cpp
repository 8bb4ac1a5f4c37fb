// SPDX-License-Identifier: Apache-2.0
#include "plan/sheets.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/text.h"
#include "plan/roofline.h"
#include "plan/state_bytes.h"

namespace welkin::plan {
namespace {

constexpr double kBillion = 1e9, kTera = 1e12, kPeta = 1e15;

std::optional<double> divided(std::optional<double> value, double by) {
  if (value) *value /= by;
  return value;
}

std::string devices_at_rate(const GptTraining& training) {
  return cat(training.devices, training.devices == 1 ? " device at " : " devices at ", training.flops_per_second / kTera,
             " TFLOP/s");
}

// The slide prints 1.3, 2.7, 13 and 175 beside these sizes: its labels are shifted, and the days are those of the sizes here.
Section lecture_days() {
  struct Row {
    double parameters, teraflops;
  };
  Section section{.title = "days to train on 300e9 tokens, 480 GPUs", .figures = {}};
  for (const Row& row : {Row{2.7, 127}, Row{6.7, 130}, Row{13, 135}, Row{175, 140}}) {
    section.figures.push_back({.name = cat(row.parameters, "e9 parameters"),
                               .value = training_days({.tokens = 300 * kBillion,
                                                       .parameters = row.parameters * kBillion,
                                                       .devices = 480,
                                                       .flops_per_second = row.teraflops * kTera}),
                               .unit = "days",
                               .decimals = 1,
                               .note = cat("8 T P / (n X), X = ", row.teraflops, " TFLOP/s")});
  }
  return section;
}

Section state_bytes_section(const std::string& title, double parameters) {
  Section section{.title = title, .figures = {}};
  for (const StateRule& rule : kStateRules) {
    section.figures.push_back({.name = rule.name,
                               .value = rule.total() * parameters / kBytesPerGib,
                               .unit = "GiB",
                               .decimals = 4,
                               .note = cat(rule.total(), " bytes per parameter")});
  }
  return section;
}

Section zero_section(double parameters, int64_t ranks) {
  Section section{.title = cat("ZeRO, per rank of ", ranks), .figures = {}};
  for (const int64_t stage : {0, 1, 2, 3}) {
    section.figures.push_back({.name = stage == 0 ? "no stage" : cat("stage ", stage),
                               .value = zero_bytes_per_parameter(stage, ranks) * parameters / kBytesPerGib,
                               .unit = "GiB",
                               .decimals = 4,
                               .note = cat(zero_traffic_per_parameter(stage), " P elements moved per step")});
  }
  return section;
}

// The slide says 143, but the quotient of its two numbers is 153.
Section intensity_section() {
  constexpr double kA100Peak = 312e12, kA100Bytes = 2039e9;
  return {
      .title = "arithmetic intensity",
      .figures = {
          {"A100, fp16: compute-bound above", intensity_threshold(kA100Peak, kA100Bytes), "FLOP/B", 1, "312 TFLOP/s / 2039 GB/s"},
          {"fp16 addition", addition_intensity(2), "FLOP/B", 3, "1 FLOP, 3 x 2 bytes"},
          {"fp16 matmul of 1024 x 1024", matmul_intensity(1024, 1024, 1024, 2), "FLOP/B", 1, "2 m n k / (2 (m k + k n + m n))"},
          {"A100 peak, TF32", peak_flops(108, 512, 1.41e9) / kTera, "TFLOP/s", 1, "108 SMs x 512 x 2 x 1.41 GHz"},
          {"A100 peak, fp16", peak_flops(108, 1024, 1.41e9) / kTera, "TFLOP/s", 1, "108 SMs x 1024 x 2 x 1.41 GHz"}}};
}

std::string passes_text(const RunEstimate& run) {
  return cat("forward and backward", run.model_steps > 1 ? cat(", ", run.model_steps, " steps of the model") : "",
             run.ensemble_members > 1 ? cat(", ", run.ensemble_members, " members") : "");
}

// Calls beside the computation and others of one collective are one row.
Section collectives_section(const RunEstimate& run) {
  Section section{.title = "collectives of the model", .figures = {}};
  std::vector<CollectiveTraffic> rows;
  for (const CollectiveTraffic& each : run.collectives) {
    const auto same = std::ranges::find_if(
        rows, [&](const CollectiveTraffic& row) { return row.group == each.group && row.kind == each.kind; });
    if (same == rows.end()) {
      rows.push_back(each);
    } else {
      same->calls += each.calls;
      same->bytes += each.bytes;
    }
  }
  for (const CollectiveTraffic& row : rows) {
    section.figures.push_back({cat(collective_name(row.kind), " over ", row.group), row.bytes / 1e6, "MB per step and rank", 3,
                               cat(std::llround(row.calls), " calls of ", row.ranks, " ranks")});
  }
  return section;
}

}  // namespace

std::vector<Section> lecture_sheet() {
  return {lecture_days(), state_bytes_section("state of 1e9 parameters", kBillion),
          state_bytes_section("state of 175e9 parameters", 175 * kBillion), zero_section(kBillion, 64), intensity_section()};
}

namespace {

// More decimals than usual where a small model's figure would have fewer than two digits.
int decimals_for(double value, int usual) {
  if (value <= 0 || value >= std::pow(10.0, 1 - usual)) return usual;
  constexpr int kMost = 15;
  return std::min(kMost, 1 - static_cast<int>(std::floor(std::log10(value))));
}

Figure small_or_large(std::string name, double value, std::string unit, int usual, std::string note) {
  const int decimals = decimals_for(value, usual);
  return {std::move(name), value, std::move(unit), decimals, std::move(note)};
}

}  // namespace

std::vector<Section> language_model_sheet(const LanguageModelQuestion& question) {
  GptTraining training = question.training;
  Section section{.title = "language model", .figures = {}};
  auto& figures = section.figures;
  const bool is_given = !question.shape || training.parameters > 0;
  if (!is_given) training.parameters = gpt_parameters(*question.shape);
  figures.push_back(
      small_or_large("parameters", training.parameters / kBillion, "1e9", 3, is_given ? "given" : "12 l h^2 (1 + ...)"));
  if (question.shape && question.batch > 0) {
    const double step = gpt_step_flops(*question.shape, question.batch);
    figures.push_back({"FLOPs of a step", step / kPeta, "PFLOP", 3, "96 B s l h^2 (1 + s/(6 h) + V/(16 l h))"});
    if (training.flops_per_second > 0) {
      figures.push_back(small_or_large("time of a step", step / (training.devices * training.flops_per_second), "s", 2,
                                       devices_at_rate(training)));
    }
  }
  if (training.tokens > 0) {
    const double flops = training.flops_per_parameter * training.tokens * training.parameters;
    figures.push_back(small_or_large("FLOPs of the training", flops / kPeta / 86400, "PFLOP/s-days", 1,
                                     cat(training.flops_per_parameter, " per token and parameter")));
    if (training.flops_per_second > 0) {
      figures.push_back(small_or_large("days to train", training_days(training), "days", 1, devices_at_rate(training)));
    }
  }
  std::vector<Section> sheet{section, state_bytes_section("weights, gradients, optimizer", training.parameters)};
  if (training.devices > 1) sheet.push_back(zero_section(training.parameters, static_cast<int64_t>(training.devices)));
  return sheet;
}

std::vector<Section> run_sheet(const RunEstimate& run) {
  const auto samples = run.samples ? std::optional(static_cast<double>(*run.samples)) : std::nullopt;
  const auto steps = samples ? std::optional(*samples / static_cast<double>(run.global_batch)) : std::nullopt;
  Section work{
      .title = "work",
      .figures = {{"parameters", static_cast<double>(run.cost.parameters) / 1e6, "1e6", 3, ""},
                  {"forward pass of a sample", run.cost.forward_flops / kBillion, "GFLOP", 1, "2 per multiply-add of matmuls"},
                  {"training step of a sample", run.cost.train_flops / kBillion, "GFLOP", 1, passes_text(run)},
                  {"training step", run.step_flops / kTera, "TFLOP", 2, cat(run.global_batch, " samples")},
                  {"samples of the run", samples, "", 0, ""},
                  {"steps of the run", steps, "", 0, ""},
                  {"the run", divided(run.run_flops(), kPeta), "PFLOP", 2, ""}}};
  if (run.recompute_flops > 0) {
    work.figures.insert(work.figures.begin() + 4,
                        {"forward again", run.recompute_flops / kTera, "TFLOP", 2, "activation checkpointing, of a step"});
  }
  Section memory{.title = cat("memory of a rank, tp=", run.tensor_parallel, ", cp=", run.context_parallel,
                              run.blocks > 1 ? cat(", blocks=", run.blocks) : "",
                              run.pipeline_parallel > 1 ? cat(", pp=", run.pipeline_parallel) : ""),
                 .figures = {}};
  if (run.pipeline_parallel > 1) {
    memory.figures.push_back({"rank of the pipeline", static_cast<double>(run.stage), "", 0, "the one that needs most"});
  }
  for (const MemoryPart& part : run.memory) memory.figures.push_back({part.name, part.bytes / kBytesPerGib, "GiB", 4, ""});
  memory.figures.push_back(
      {"all of it", run.memory_bytes() / kBytesPerGib, "GiB", 4,
       cat(run.forward_batch, " samples a forward pass", run.shares_state ? ", at the worst moment of the backward pass" : "")});
  if (run.offloaded_bytes > 0) {
    const char* const where = run.disk_bytes > 0 ? "in a file" : "in the host's memory";
    memory.figures.push_back({"offloaded", run.offloaded_bytes / kBytesPerGib, "GiB", 4, where});
  }
  if (run.replay_bytes > 0) {
    memory.figures.push_back({"states to replay", run.replay_bytes / kBytesPerGib, "GiB", 4, "in the host's memory"});
  }
  Section time{
      .title = cat("time on ", run.world_size, run.world_size == 1 ? " device" : " devices"),
      .figures = {
          {"a step", run.step_seconds, "s", 4, run.idle > 0 ? "FLOPs / achieved rate / (1 - bubble)" : "FLOPs / achieved rate"},
          {"the run", divided(run.run_seconds, 3600), "hours", 3, ""},
          {"the run, all devices", run.device_hours(), "device-hours", 3, ""},
          {"sent for gradients", run.reduced_bytes / 1e6, "MB per step and rank", 1, "(n - 1)/n of each transfer"}}};
  if (run.idle > 0) {
    time.figures.insert(time.figures.begin() + 1, {"bubble of the pipeline", 100 * run.idle, "%", 1,
                                                   "idle time of the schedule; smaller micro-batches reduce it"});
  }
  if (run.disk_bytes > 0) {
    time.figures.push_back(
        {"to and from the disk", run.disk_bytes / 1e6, "MB per step and rank", 1, "offloaded states, read and written once"});
  }
  if (run.collectives.empty()) return {work, memory, time};
  return {work, memory, time, collectives_section(run)};
}

}  // namespace welkin::plan
