// SPDX-License-Identifier: Apache-2.0
// `welkin data ingest FILES_OR_FOLDERS... --out DIR`: GRIB and netCDF to the training layout; with --box, fields to boxes.
// docs/reference/ingest.md.
#include "data/ingest/ingest.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "apps/cli/application.h"
#include "apps/cli/verbs.h"
#include "apps/data/ingest_flags.h"
#include "core/text.h"
#include "data/ingest/box.h"
#include "data/ingest/option_text.h"
#include "data/sample/calendar.h"
#include "observe/log/console.h"
#include "observe/log/progress.h"

namespace welkin::apps {
namespace {

in::Report run_fields(IngestArguments& a, const std::string& command) {
  a.fields.command = command;
  a.fields.variables = in::parse_choices(a.variables);
  if (!a.crop.empty()) a.fields.crop = in::parse_crop(a.crop);
  if (!a.step.empty()) a.fields.step = data::parse_duration(a.step);
  if (!a.valid_last.empty()) a.fields.split.valid_last = data::parse_duration(a.valid_last);
  if (!a.test_last.empty()) a.fields.split.test_last = data::parse_duration(a.test_last);
  observe::Console console;  // standard error: a bar on a terminal, else a line now and then
  std::optional<observe::Progress> bar;
  return in::ingest(in::Component(a.component), a.fields, [&](int64_t done, int64_t total) {
    if (a.quiet) return;
    if (!bar) bar.emplace(console, observe::ProgressOptions{.title = "ingest", .total = total, .unit = "times"});
    bar->update(done);
  });
}

in::Report run_box(IngestArguments& a, const std::string& command) {
  a.box.command = command;
  a.box.inputs = a.fields.inputs;
  a.box.recursive = a.fields.recursive;
  a.box.out = a.fields.out;
  a.box.input = in::parse_choices(a.input);
  a.box.target = in::parse_choices(a.target);
  if (!a.shape.empty()) a.box.shape = in::parse_shape(a.shape);
  a.box.valid_fraction = a.fields.split.valid_fraction;
  a.box.licence = a.fields.licence;
  a.box.component = a.component;
  return in::ingest_box(a.box);
}

}  // namespace

int verb_data_ingest(Application& application, int argc, char** argv) {
  IngestArguments arguments;
  CLI::App app{"make training files from GRIB and netCDF"};
  add_ingest_flags(app, arguments);
  if (!parse_arguments(application, app, argc, argv)) return 0;
  const std::string command = join(std::vector<std::string>(argv, argv + argc), " ");
  const in::Report report = arguments.is_box ? run_box(arguments, command) : run_fields(arguments, command);
  if (!arguments.quiet) {
    for (const auto& line : report.lines) application.out << line << "\n";
  }
  return 0;
}

}  // namespace welkin::apps
