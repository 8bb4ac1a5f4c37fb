// SPDX-License-Identifier: Apache-2.0
// welkin plan estimate: FLOPs, memory and time before a job is queued.
#include <functional>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/cli/help.h"
#include "apps/cli/run_estimate.h"
#include "apps/cli/verbs.h"
#include "config/flags/command_line.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "plan/failure_sheet.h"
#include "plan/sheets.h"

namespace welkin::apps {
namespace {

const std::vector<config::ExtraFlag> kPlanFlags = {
    {"devices", "N", "devices that work together (1)"},
    {"rate", "TFLOPS", "measured TFLOP/s of each device; without it no times are estimated"},
    {"save_seconds", "S",
     "time that a checkpoint blocks training: with --mtbf, prints the best interval and the expected goodput"},
    {"write_seconds", "S", "with --save_seconds: time to publish a checkpoint that is written beside training"},
    {"restart_seconds", "S", "with --save_seconds: time from a failure until training continues (0)"},
    {"nodes", "N", "with --save_seconds: nodes of the job, each of which fails every --mtbf hours (1)"},
    {"json", "FILE", "write the figures as JSON to this file; - prints them instead of the table"},
    {"lecture", "", "instead of a run: the worked examples of the ELLIS lecture"},
    {"parameters", "P", "instead of a run: a language model with P parameters"},
    {"layers", "L", "instead of a run: a GPT of L layers"},
    {"hidden", "H", "with --layers: hidden width"},
    {"sequence", "S", "with --layers: tokens per sequence (2048)"},
    {"vocabulary", "V", "with --layers: vocabulary size (51200)"},
    {"batch", "B", "with --layers: sequences per step"},
    {"tokens", "T", "with --parameters or --layers: training tokens"},
    {"flops_per_parameter", "F",
     "with --tokens: FLOPs per parameter and token; 8 with activation checkpointing (default), else 6"}};

// Returns 0 where the flag is absent.
double number_given(const config::CommandLine& line, const std::string& name) {
  constexpr double kSmallest = 1e-30, kGreatest = 1e30;
  return number_flag(line, name, 0, kSmallest, kGreatest);
}

int64_t devices_given(const config::CommandLine& line) { return whole_flag(line, "devices", 1, 1, 1'000'000); }

std::vector<plan::Section> language_model(const config::CommandLine& line) {
  plan::LanguageModelQuestion question{.training = {.tokens = number_given(line, "tokens"),
                                                    .parameters = number_given(line, "parameters"),
                                                    .devices = static_cast<double>(devices_given(line)),
                                                    .flops_per_second = number_given(line, "rate") * 1e12},
                                       .batch = number_given(line, "batch")};
  if (const double flops = number_given(line, "flops_per_parameter"); flops > 0) question.training.flops_per_parameter = flops;
  const double layers = number_given(line, "layers"), hidden = number_given(line, "hidden");
  if ((layers > 0) != (hidden > 0)) {
    throw ConfigError("plan", cat("a GPT needs both: layers=", layers, ", hidden=", hidden), "Give --layers and --hidden");
  }
  if (layers > 0) {
    question.shape = plan::GptShape{.layers = layers, .hidden = hidden};
    if (const double sequence = number_given(line, "sequence"); sequence > 0) question.shape->sequence = sequence;
    if (const double vocabulary = number_given(line, "vocabulary"); vocabulary > 0) question.shape->vocabulary = vocabulary;
  }
  return plan::language_model_sheet(question);
}

// --mtbf is also a configuration key.
double mtbf_given(config::CommandLine line) {
  for (const config::Setting& setting : line.settings) {
    if (setting.key == "mtbf" || setting.key == "loop.mtbf") line.extra["mtbf"] = setting.text;
  }
  if (const double hours = number_given(line, "mtbf"); hours > 0) return hours;
  throw ConfigError("plan", cat("how often nodes fail is not said: save_seconds=", line.extra["save_seconds"]),
                    "Give --mtbf, the mean hours between failures of one node, for instance --mtbf 6000");
}

plan::Section failures(const config::CommandLine& line, std::optional<double> step_seconds) {
  const auto given = [&line](const char* flag) {
    return has_flag(line, flag) ? std::optional(number_given(line, flag)) : std::nullopt;
  };
  return plan::failure_sheet({.mtbf_hours = mtbf_given(line),
                              .nodes = static_cast<double>(whole_flag(line, "nodes", 1, 1, 1'000'000)),
                              .save_seconds = number_given(line, "save_seconds"),
                              .write_seconds = given("write_seconds"),
                              .restart_seconds = given("restart_seconds").value_or(0),
                              .step_seconds = step_seconds});
}

bool names_run(const config::CommandLine& line) {
  return line.yaml_config || line.config || line.tutorial != config::Tutorial::None;
}

std::vector<plan::Section> run_of_ours(const Application& application, const config::CommandLine& line) {
  const bool asks_failures = has_flag(line, "save_seconds");
  if (asks_failures && !names_run(line)) return {failures(line, {})};
  const double rate = number_given(line, "rate");
  const plan::RunEstimate run = estimate_of(
      application, line,
      {.world = devices_given(line), .flops_per_second = rate > 0 ? std::optional<double>(rate * 1e12) : std::nullopt});
  std::vector<plan::Section> sheet = plan::run_sheet(run);
  if (asks_failures) sheet.push_back(failures(line, run.step_seconds));
  return sheet;
}

// The flags that the question does not read. They would change nothing, and look as if they had.
void refuse_flags_without_effect(const config::CommandLine& line) {
  const bool is_lecture = has_flag(line, "lecture");
  const bool is_gpt = line.extra.contains("layers"), is_language_model = is_gpt || line.extra.contains("parameters");
  const bool is_run = !is_lecture && !is_language_model;
  const bool asks_failures = is_run && has_flag(line, "save_seconds");
  const bool is_failures_alone = asks_failures && !names_run(line);
  std::set<std::string, std::less<>> read{"json", "lecture"};
  if (is_run) read.insert("save_seconds");
  if (!is_lecture && !is_failures_alone) read.insert({"devices", "rate"});
  if (!is_lecture && is_language_model) read.insert({"parameters", "layers", "hidden", "tokens"});
  if (!is_lecture && is_gpt) read.insert({"sequence", "vocabulary", "batch"});
  if (!is_lecture && is_language_model && line.extra.contains("tokens")) read.insert("flops_per_parameter");
  if (asks_failures) read.insert({"write_seconds", "restart_seconds", "nodes"});

  std::vector<std::string> idle;
  const auto check = [&idle](bool is_idle, std::string flag) {
    if (is_idle) idle.push_back(std::move(flag));
  };
  check(!is_run && line.yaml_config, "--yaml_config");
  check(!is_run && line.config, "--config");
  check(!is_run && line.ds_config, "--ds_config");
  check(!is_run && line.tutorial != config::Tutorial::None, "--tutorial");
  for (const auto& [name, value] : line.extra) check(!read.contains(name), cat("--", name));
  for (const config::Setting& setting : line.settings) {
    const bool is_mtbf = is_run && (setting.key == "mtbf" || setting.key == "loop.mtbf");
    check(!is_run || (is_failures_alone && !is_mtbf), setting.flag);
  }
  if (idle.empty()) return;
  throw ConfigError("plan estimate", cat("flags without effect on this estimate: ", join(idle, ", ")),
                    "Leave them out; --help says what each belongs to");
}

}  // namespace

int verb_plan_estimate(Application& application, int argc, char** argv) {
  config::CommandLine line = config::parse(argc, argv, kPlanFlags);
  if (line.help != config::Help::Off) {
    print_help(application, {.program = argv[0], .extra = kPlanFlags, .common = config::Common::Steps}, line.help);
    return 0;
  }
  refuse_flags_without_effect(line);
  const bool is_language_model = line.extra.contains("parameters") || line.extra.contains("layers");
  const auto sheet = line.extra["lecture"] == "true" ? plan::lecture_sheet()
                     : is_language_model             ? language_model(line)
                                                     : run_of_ours(application, line);
  const std::string json = line.extra["json"];
  application.out << (json == "-" ? plan::figures_json(sheet) : plan::figures_text(sheet));
  if (!json.empty() && json != "-") write_file_atomically(json, plan::figures_json(sheet));
  return 0;
}

}  // namespace welkin::apps
