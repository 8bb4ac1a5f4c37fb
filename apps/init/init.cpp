// SPDX-License-Identifier: Apache-2.0
// `welkin init FILES_OR_FOLDERS... --task forecast|box --out DIR`: makes training files, statistics and a configuration from
// unknown files, and says what to run next. It prints each assumption with the flag that overrides it. It takes all flags of
// `welkin data ingest`. DIR appears as a whole or not at all.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/application.h"
#include "apps/cli/check_helper.h"
#include "apps/cli/verbs.h"
#include "apps/data/ingest_flags.h"
#include "apps/init/box_facts.h"
#include "apps/init/empty_target.h"
#include "apps/init/preset.h"
#include "apps/init/training_size.h"
#include "core/error.h"
#include "core/text.h"
#include "data/datasets/field_file.h"
#include "data/formats/array_file.h"
#include "data/ingest/defaults.h"
#include "data/ingest/staging.h"
#include "launch/batch/shell_word.h"

namespace welkin::apps {
namespace {

namespace fs = std::filesystem;

constexpr double kDefaultShare = 0.25;  // part of a box for validation

std::vector<std::string> next_commands(const fs::path& out, const std::string& preset) {
  const auto word = [](const fs::path& path) { return launch::shell_word(path.string()); };
  const std::string train = cat("welkin train --yaml_config ", word(out / preset), " --data_root ", word(out / "data"),
                                " --log_root ", word(out / "logs"));
  const std::string run = word(out / "logs" / "base" / "1GPU" / "00");
  const std::string few = preset == kForecastPreset ? " --set limit_nsamples_val=8" : "";
  return {cat(train, " --num_iters 1", few, " --run_num first"), train, cat("welkin evaluate ", run)};
}

class Initialisation {
 public:
  Initialisation(Application& application, IngestArguments& arguments, std::string command)
      : application_(application), arguments_(arguments), command_(std::move(command)), out_(arguments.fields.out) {}

  void run(const std::string& task) {
    const EmptyTarget empty(out_);
    in::StagingFolder staging(out_);
    folder_ = staging.path();
    arguments_.fields.out = folder_ / "data";
    task == "box" ? make_box() : make_forecast();
    staging.publish();
    application_.out << "\nwrote " << (out_ / preset_).string() << "\nnext:\n";
    for (const std::string& line : next_commands(out_, preset_)) application_.out << "  " << line << "\n";
  }

 private:
  void report(const std::vector<std::string>& lines, std::string_view before = "") {
    if (arguments_.quiet) return;
    for (const std::string& line : lines) application_.out << before << line << "\n";
  }

  void make_forecast() {
    preset_ = kForecastPreset;
    settle_fields(arguments_, command_);
    const in::Component component(arguments_.component, check_helper());
    const in::FieldDefaults defaults = in::choose_defaults(component, arguments_.fields);
    report(defaults.assumed, "assumed: ");
    report(in::ingest(component, defaults.options, {}).lines);
    write([&](const TrainingSize& size) {
      return forecast_preset(forecast_facts(defaults.options.patch), size, next_commands(out_, preset_));
    });
  }

  ForecastFacts forecast_facts(int64_t patch) const {
    const fs::path file = data::list_field_files(folder_ / "data/train").front();
    const data::FieldFacts facts = data::FieldFile(file).facts();
    const auto steps = data::open_array_file(file).texts("time", "step");
    return {.channels = facts.channel_names,
            .units = facts.units,
            .height = facts.height,
            .width = facts.width,
            .patch = patch,
            .roles = facts.roles,
            .statics = facts.static_names,
            .has_test = fs::exists(folder_ / "data/test"),
            .step = steps.empty() ? "the file" : steps.front()};
  }

  void make_box() {
    preset_ = "box.yaml";
    settle_box(arguments_, command_);
    if (const std::string assumed = name_box_fields(arguments_); !assumed.empty()) report({assumed}, "assumed: ");
    if (arguments_.box.valid_fraction == 0) {
      arguments_.box.valid_fraction = kDefaultShare;
      report({cat("validation: the last ", kDefaultShare, " of axis ", arguments_.box.valid_axis,
                  " (--valid_fraction and --valid_axis choose)")},
             "assumed: ");
    }
    report(in::ingest_box(arguments_.box).lines);
    const BoxFacts facts = box_facts(folder_ / "data");
    write([&](const TrainingSize& size) { return box_preset(facts, size, next_commands(out_, preset_)); });
  }

  void write(const std::function<std::string(const TrainingSize&)>& text) {
    const TrainingSize size = write_sized_preset(application_, folder_, preset_, text);
    report({cat("batch: ", size.batch, ", by the planner ", size.memory, " of memory (global_batch_size in ", preset_, ")")},
           "assumed: ");
  }

  Application& application_;
  IngestArguments& arguments_;
  std::string command_, preset_;
  fs::path out_, folder_;
};

}  // namespace

int verb_init(Application& application, int argc, char** argv) {
  IngestArguments arguments;
  arguments.fields.missing = in::MissingPolicy::Mask;
  std::string task = "forecast";
  CLI::App app{
      "Training files, statistics and a commented configuration from GRIB, netCDF and HDF5 files; takes the flags of welkin data "
      "ingest"};
  app.add_option("--task", task, "forecast: fields in time; box: from three-dimensional fields to others")
      ->check(CLI::IsMember({"forecast", "box"}))
      ->capture_default_str();
  add_ingest_flags(app, arguments);
  app.remove_option(app.get_option("--box"));
  if (!parse_arguments(application, app, argc, argv)) return 0;
  refuse_other_flags(app, task == "box", task == "box" ? "give --task forecast" : "give --task box");
  Initialisation(application, arguments, join(std::vector<std::string>(argv, argv + argc), " ")).run(task);
  return 0;
}

}  // namespace welkin::apps
