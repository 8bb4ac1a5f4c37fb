// SPDX-License-Identifier: Apache-2.0
// welkin verify --case DIR...: Welkin's numbers against reference cases.
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/text.h"
#include "train/device.h"
#include "train/reference/report.h"
#include "verbs.h"

namespace welkin::apps {
namespace {

std::optional<config::AmpMode> amp_mode_named(const std::string& name) {
  if (name == "fp32") return config::AmpMode::None;
  if (name == "bf16") return config::AmpMode::Bf16;
  if (name == "fp16") return config::AmpMode::Fp16;
  return std::nullopt;
}

// A case that could not be run is bad data; one that ran and deviates is not.
ExitCode verify_exit_code(const std::vector<train::reference::CaseReport>& reports) {
  if (std::ranges::any_of(reports, [](const auto& report) { return !report.error.empty(); })) return ExitCode::Data;
  return std::ranges::all_of(reports, [](const auto& report) { return report.passed(); }) ? ExitCode::Done : ExitCode::Other;
}

}  // namespace

int verb_verify(Application& application, int argc, char** argv) {
  CLI::App app(
      "Runs reference cases of every kind: output, activations, loss, gradients and optimizer steps of models, and tables of "
      "schedules, losses, data and layouts, within each case's bounds. Exit code 0: all pass");
  std::vector<std::string> arguments;
  std::string json, device = "cpu", amp_mode;
  int threads = 0;
  bool brief = false;
  app.add_option("--case", arguments, "folders of cases, or folders of such folders")->required();
  app.add_option("--json", json, "write every comparison to this file; - is standard output");
  app.add_option("--device", device, "cpu, cuda or auto; float32 is never TF32")->capture_default_str();
  app.add_option("--amp_mode", amp_mode,
                 "fp32, bf16 or fp16 instead of the case's own precision: forward and loss by derived bounds")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--threads", threads, "threads; 0 takes the cores of this process")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  app.add_flag("--brief", brief, "print only the tensors that fail");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  at::set_num_threads(threads > 0 ? threads : usable_cores());
  const train::reference::VerifyOptions options{train::choose_device(device), amp_mode_named(amp_mode)};
  std::vector<std::string> ignored;
  const auto folders = train::reference::find_cases(arguments, ignored);
  for (const std::string& path : ignored) application.err << "left out, not a folder: " << path << "\n";
  std::ostream& text = json == "-" ? application.err : application.out;
  std::vector<train::reference::CaseReport> reports;
  for (const auto& folder : folders) {
    reports.push_back(train::reference::verify_case(folder, options));
    text << train::reference::report_text(reports.back(), brief) << std::flush;
  }
  text << train::reference::summary_text(reports) << std::flush;
  if (json == "-") {
    application.out << train::reference::report_json(reports) << std::flush;
  } else if (!json.empty()) {
    write_file_atomically(json, train::reference::report_json(reports));
  }
  return static_cast<int>(verify_exit_code(reports));
}

}  // namespace welkin::apps
