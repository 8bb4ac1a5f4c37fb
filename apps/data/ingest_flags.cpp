// SPDX-License-Identifier: Apache-2.0
#include "apps/data/ingest_flags.h"

#include <array>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/check_helper.h"
#include "core/error.h"
#include "core/text.h"
#include "data/ingest/option_text.h"
#include "data/sample/calendar.h"

namespace welkin::apps {
namespace {

void settle_grid(IngestArguments& a) {
  const std::vector<int64_t> size = in::parse_shape(a.grid);
  if (size.size() != 2 || size[0] < 1 || size[1] < 1) {
    throw ConfigError("ingest", cat("not a grid: text=", a.grid), "Write rows and columns, as in 64x128");
  }
  a.fields.grid.height = size[0], a.fields.grid.width = size[1];
  if (a.is_bilinear) a.fields.grid.method = in::RegridMethod::Bilinear;
}

// --valid_fraction is of both.
constexpr std::array kSeriesFlags{"--variables", "--levels",        "--members",  "--circular",   "--grid",      "--bilinear",
                                  "--crop",      "--patch",         "--step",     "--valid_from", "--test_from", "--valid_last",
                                  "--test_last", "--test_fraction", "--missing",  "--role",       "--constant",  "--duplicates",
                                  "--gaps",      "--files",         "--min_steps"};
constexpr std::array kBoxFlags{"--input",      "--target",  "--vector", "--log", "--shape", "--cells", "--target_deviations",
                               "--valid_axis", "--periodic"};

}  // namespace

void refuse_other_flags(const CLI::App& app, bool is_box, const std::string& other) {
  const std::span<const char* const> flags = is_box ? std::span<const char* const>(kSeriesFlags) : kBoxFlags;
  std::vector<std::string> given;
  for (const char* flag : flags) {
    if (app.count(flag) > 0) given.emplace_back(flag);
  }
  if (given.empty()) return;
  throw ConfigError(
      app.get_name(),
      cat(is_box ? "a box takes no flags of fields in time: flags=" : "fields in time take no flags of a box: flags=",
          join(given, " ")),
      cat("Leave them out, or ", other));
}

void settle_fields(IngestArguments& a, const std::string& command) {
  a.fields.command = command;
  a.fields.variables = in::parse_choices(a.variables);
  if (!a.crop.empty()) a.fields.crop = in::parse_crop(a.crop);
  if (!a.grid.empty()) settle_grid(a);
  if (!a.step.empty()) a.fields.step = data::parse_duration(a.step);
  if (!a.valid_last.empty()) a.fields.split.valid_last = data::parse_duration(a.valid_last);
  if (!a.test_last.empty()) a.fields.split.test_last = data::parse_duration(a.test_last);
}

void settle_box(IngestArguments& a, const std::string& command) {
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
  a.box.helper = check_helper();
}

}  // namespace welkin::apps
