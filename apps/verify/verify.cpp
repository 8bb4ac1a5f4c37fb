// SPDX-License-Identifier: Apache-2.0
// welkin verify --case DIR...: compares Welkin's numbers with reference cases.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/rank_run.h"
#include "apps/cli/verbs.h"
#include "apps/verify/layouts.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output_check.h"
#include "core/process/host.h"
#include "core/text.h"
#include "ops/attention/attention_backend.h"
#include "train/device/device.h"
#include "train/device/process_settings.h"
#include "verify/cases/case_folder.h"
#include "verify/engine/many_process_engine.h"
#include "verify/report.h"

namespace welkin::apps {
namespace {

std::optional<config::AmpMode> amp_mode_named(const std::string& name) {
  if (name == "fp32") return config::AmpMode::None;
  if (name == "bf16") return config::AmpMode::Bf16;
  if (name == "fp16") return config::AmpMode::Fp16;
  return std::nullopt;
}

// A case that could not be run counts as bad data; a case that deviates does not.
ExitCode verify_exit_code(const std::vector<verify::CaseReport>& reports) {
  if (std::ranges::any_of(reports, [](const auto& report) { return !report.error.empty(); })) return ExitCode::Data;
  return std::ranges::all_of(reports, [](const auto& report) { return report.passed(); }) ? ExitCode::Done : ExitCode::Other;
}

// Runs a parallel case again on the ranks that it names, each a process. Their verdict is one row.
void add_run_on_ranks(const std::filesystem::path& folder, verify::CaseReport& report) {
  if (report.kind != "parallel" || !report.error.empty()) return;
  const int64_t num_ranks = verify::ranks_of_case(verify::CaseFolder(folder));
  verify::ComparisonRow row;
  row.tensor = cat("the same on ", num_ranks, " processes");
  row.part = "ranks";
  const int code = run_local_ranks(own_command_with("verify", {"--case", folder.string(), "--brief"}), num_ranks);
  row.verdict = code == 0 ? verify::Verdict::Pass : verify::Verdict::Fail;
  row.reason = cat("exit code of the processes ", code);
  report.rows.push_back(row);
}

// Runs this process as one of those ranks: every rank compares, and rank 0 reports.
int verify_as_rank(const launch::RankInfo& place, const std::vector<std::filesystem::path>& folders, bool brief,
                   Application& application) {
  constexpr int64_t kDeadlineSeconds = 60;
  const train::ProcessSession session(train::one_thread());
  const auto connection = connect_rank(place, kDeadlineSeconds);
  const verify::CaseRanks ranks{place.rank, place.world_size, [&](const std::string& name, parallel::GroupMembers members) {
                                  return connection->make_group(name, std::move(members));
                                }};
  verify::VerifyOptions options;
  options.ranks = &ranks;
  std::vector<verify::CaseReport> reports;
  for (const auto& folder : folders) {
    reports.push_back(verify::verify_case(folder, options));
    if (place.rank == 0) application.out << verify::report_text(reports.back(), brief) << std::flush;
  }
  connection->close();
  return static_cast<int>(verify_exit_code(reports));
}

}  // namespace

int verb_verify(Application& application, int argc, char** argv) {
  if (std::find(argv + 1, argv + argc, std::string_view("--layouts")) != argv + argc)
    return verify_layouts(application, argc, argv);
  CLI::App app(
      "Runs reference cases of every kind: output, activations, loss, gradients and optimizer steps of models, and tables of "
      "schedules, losses, data and layouts, within each case's bounds. Exit code 0: all pass. The other form, welkin verify "
      "--layouts [some|pairs|all] [--world 2,4,8] [--model NAME] [--device cuda] [--deadline_s S] [--hang-rank R], trains a "
      "small model under "
      "every layout of so many processes and compares it with one process");
  std::vector<std::string> arguments;
  std::string json, device = "cpu", amp_mode;
  int threads = 0;
  bool brief = false;
  app.add_option("--case", arguments, "folders of cases, or folders of such folders")->type_name("DIR")->required();
  app.add_option("--json", json, "write every comparison to this file; - is standard output")->type_name("FILE");
  app.add_option("--device", device, "cpu, cuda or auto; float32 is never TF32")->capture_default_str();
  app.add_option("--amp_mode", amp_mode,
                 "fp32, bf16 or fp16 instead of the case's own precision: forward and loss by derived bounds")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--threads", threads, "threads; 0 = the cores of this process")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  app.add_flag("--brief", brief, "print only the tensors that fail");
  if (!parse_arguments(application, app, argc, argv, {"--layouts"})) return 0;
  if (!json.empty() && json != "-") check_output("verify", "--json", json);
  const verify::VerifyOptions options{train::choose_device(train::device_named(device)), amp_mode_named(amp_mode)};
  config::RunConfig as_in_training;
  as_in_training.loop.threads = threads > 0 ? threads : usable_cores();
  as_in_training.backend.cudnn_benchmark = false;  // the fastest algorithms of float32 are not the most exact ones
  as_in_training.backend.cudnn_deterministic = true;
  const train::ProcessSession session(as_in_training, options.device);
  if (options.device.is_cuda()) ops::set_exact_attention();
  std::vector<std::string> ignored;
  const auto folders = verify::find_cases(arguments, ignored);
  for (const std::string& path : ignored) application.err << "left out, not a folder: " << path << "\n";
  const launch::RankInfo place = this_rank_info();
  if (place.world_size > 1) return verify_as_rank(place, folders, brief, application);
  std::ostream& text = json == "-" ? application.err : application.out;
  std::vector<verify::CaseReport> reports;
  for (const auto& folder : folders) {
    reports.push_back(verify::verify_case(folder, options));
    add_run_on_ranks(folder, reports.back());
    text << verify::report_text(reports.back(), brief) << std::flush;
  }
  text << verify::summary_text(reports) << std::flush;
  if (json == "-") {
    application.out << verify::report_json(reports) << std::flush;
  } else if (!json.empty()) {
    write_file_atomically(json, verify::report_json(reports));
  }
  return static_cast<int>(verify_exit_code(reports));
}

}  // namespace welkin::apps
