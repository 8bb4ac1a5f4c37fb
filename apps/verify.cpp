// SPDX-License-Identifier: Apache-2.0
// welkin verify --case DIR...: a model's numbers against reference cases.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "train/reference/report.h"
#include "verbs.h"

namespace welkin::apps {

int verb_verify(Application& application, int argc, char** argv) {
  CLI::App app(
      "Runs models on reference cases: outputs, activations, loss, gradients and optimizer steps within each case's bounds");
  std::vector<std::string> folders;
  std::string json;
  bool all = false;
  app.add_option("--case", folders, "folders of cases (kinds: model, parallel)")->required();
  app.add_option("--json", json, "write every comparison to this file");
  app.add_flag("--all", all, "print every comparison, not only the failed ones");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  std::vector<train::reference::ModelReport> reports;
  for (const std::string& folder : folders) {
    reports.push_back(train::reference::run_model_case(train::reference::load_model_case(folder)));
    application.out << train::reference::report_text({reports.back()}, all) << std::flush;
  }
  if (!json.empty()) write_file_atomically(json, train::reference::report_json(reports));
  const bool passed = std::all_of(reports.begin(), reports.end(), [](const auto& report) { return report.passed(); });
  return static_cast<int>(passed ? ExitCode::Done : ExitCode::Other);
}

}  // namespace welkin::apps
