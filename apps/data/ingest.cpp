// SPDX-License-Identifier: Apache-2.0
// `welkin data ingest FILES_OR_FOLDERS... --out DIR`: GRIB and netCDF to the training layout; with --box, fields to boxes.
// docs/reference/ingest.md.
#include "data/ingest/ingest.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "apps/cli/application.h"
#include "apps/cli/check_helper.h"
#include "apps/cli/verbs.h"
#include "apps/data/ingest_flags.h"
#include "core/text.h"
#include "data/ingest/box/box.h"
#include "observe/log/console.h"
#include "observe/log/progress.h"

namespace welkin::apps {
namespace {

in::Report run_fields(IngestArguments& a, const std::string& command) {
  settle_fields(a, command);
  observe::Console console;  // standard error: a bar on a terminal, else a line now and then
  std::optional<observe::Progress> bar;
  return in::ingest(in::Component(a.component, check_helper()), a.fields, [&](int64_t done, int64_t total) {
    if (a.quiet) return;
    if (!bar) bar.emplace(console, observe::ProgressOptions{.title = "ingest", .total = total, .unit = "times"});
    bar->update(done);
  });
}

in::Report run_box(IngestArguments& a, const std::string& command) {
  settle_box(a, command);
  return in::ingest_box(a.box);
}

}  // namespace

int verb_data_ingest(Application& application, int argc, char** argv) {
  IngestArguments arguments;
  CLI::App app{"make training files from GRIB and netCDF"};
  add_ingest_flags(app, arguments);
  if (!parse_arguments(application, app, argc, argv)) return 0;
  refuse_other_flags(app, arguments.is_box, arguments.is_box ? "drop --box" : "give --box");
  const std::string command = join(std::vector<std::string>(argv, argv + argc), " ");
  const in::Report report = arguments.is_box ? run_box(arguments, command) : run_fields(arguments, command);
  if (!arguments.quiet) {
    for (const auto& line : report.lines) application.out << line << "\n";
  }
  return 0;
}

}  // namespace welkin::apps
