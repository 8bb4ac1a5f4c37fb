// SPDX-License-Identifier: Apache-2.0
// `welkin init FILES_OR_FOLDERS... --task forecast|box --out DIR`: training files, statistics and a configuration from files that
// nobody has looked at, and what to run next. What it assumed is printed, with the flag that decides otherwise; all flags of
// `welkin data ingest` hold. DIR appears as a whole or not at all.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/application.h"
#include "apps/cli/check_helper.h"
#include "apps/cli/run_estimate.h"
#include "apps/cli/verbs.h"
#include "apps/data/ingest_flags.h"
#include "apps/init/preset.h"
#include "config/resolve/resolve.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data/datasets/field_file.h"
#include "data/formats/array_file.h"
#include "data/ingest/defaults.h"
#include "data/ingest/staging.h"
#include "launch/batch/shell_word.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

namespace fs = std::filesystem;

constexpr double kMemoryShare = 0.5;    // of the machine: reading and the system want some
constexpr double kStepFlops = 5e10;     // a second of a few cores
constexpr double kDefaultShare = 0.25;  // of a box for validation
constexpr int64_t kBoxSamples = 512;
constexpr std::string_view kForecastPreset = "forecast.yaml";

// An empty folder counts as absent; where nothing comes of it, it is there again.
class EmptyTarget {
 public:
  explicit EmptyTarget(const fs::path& path) {
    std::error_code ignored;
    if (fs::is_directory(fs::symlink_status(path, ignored)) && fs::is_empty(path, ignored) && fs::remove(path, ignored))
      path_ = path;
  }
  ~EmptyTarget() {
    std::error_code ignored;
    if (!path_.empty() && !fs::exists(path_, ignored)) fs::create_directory(path_, ignored);
  }
  EmptyTarget(const EmptyTarget&) = delete;
  EmptyTarget& operator=(const EmptyTarget&) = delete;

 private:
  fs::path path_;
};

// How a run of the preset is called, with the folder at its place or at a temporary one.
config::CommandLine preset_line(const fs::path& folder, const std::string& preset, int64_t batch) {
  const std::vector<std::string> words{"welkin init",
                                       "--yaml_config",
                                       (folder / preset).string(),
                                       "--data_root",
                                       (folder / "data").string(),
                                       "--set",
                                       cat("global_batch_size=", batch),
                                       "--device",
                                       "cpu"};
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return config::parse(static_cast<int>(pointers.size()), pointers.data());
}

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
    name_box_fields();
    if (arguments_.box.valid_fraction == 0) {
      arguments_.box.valid_fraction = kDefaultShare;
      report({cat("validation: the last ", kDefaultShare, " of axis ", arguments_.box.valid_axis,
                  " (--valid_fraction and --valid_axis choose)")},
             "assumed: ");
    }
    report(in::ingest_box(arguments_.box).lines);
    write([&](const TrainingSize& size) { return box_preset(box_facts(), size, next_commands(out_, preset_)); });
  }

  // Two fields are an input and a target; of more, or one, only the user knows.
  void name_box_fields() {
    in::BoxOptions& box = arguments_.box;
    if (!box.input.empty() && !box.target.empty()) return;
    const in::Component component(arguments_.component, check_helper());
    const std::vector<std::string> names = in::box_fields(box.inputs, box.recursive, component);
    if (names.size() != 2 || !box.input.empty() || !box.target.empty()) {
      throw ConfigError("init", cat("which fields are the input and which the target: fields=", join(names, ",")),
                        "Choose with --input and --target, as in --input a,b --target c");
    }
    box.input = {{.source = names[0], .name = ""}};
    box.target = {{.source = names[1], .name = ""}};
    report({cat("input: ", names[0], ", target: ", names[1], " (--input and --target choose)")}, "assumed: ");
  }

  BoxFacts box_facts() const {
    BoxFacts facts;
    int64_t shortest = std::numeric_limits<int64_t>::max();
    for (const auto& [name, edge] : {std::pair("train.h5", &facts.train_edge), std::pair("valid.h5", &facts.valid_edge)}) {
      const data::ArrayFile file = data::open_array_file(folder_ / "data" / name);
      const auto& shape = file.array("Nbody")->facts().shape;
      *edge = std::max({shape[1], shape[2], shape[3]});
      shortest = std::min({shortest, shape[1], shape[2], shape[3]});
      facts.input = file.texts("Nbody", "channels");
      facts.target = file.texts("Hydro", "channels");
    }
    if (shortest < kSmallestCrop) {
      throw DataError("init", cat("a box that is too thin for the U-Net: cells=", shortest, ", needed=", kSmallestCrop),
                      "Hold back another axis with --valid_axis, or less with --valid_fraction");
    }
    while (facts.crop * 2 <= std::min<int64_t>(shortest, 64)) facts.crop *= 2, ++facts.scales;
    facts.scales = std::min<int64_t>(facts.scales, 4);
    return facts;
  }

  int64_t training_samples() const {
    const train::Registries& registries = application_.registries;
    const config::RunConfig config = config::resolve(preset_line(folder_, preset_, 1), 1, registries.known_names()).config;
    return registries.datasets.at(config.data.dataset).open(config, data::Split::Train)->size();
  }

  // The largest batch that fits, and the steps that some epochs take.
  template <typename Preset>
  void write(const Preset& preset) {
    const fs::path path = folder_ / preset_;
    TrainingSize size{.samples = kBoxSamples, .memory = "0 B"};
    write_file_atomically(path, preset(size));
    if (preset_ == kForecastPreset) size.samples = training_samples();
    const uint64_t memory = process_memory().limit;
    for (size.batch = kMostSamples; size.batch >= 1; size.batch /= 2) {
      const plan::RunEstimate estimate = estimate_of(application_, preset_line(folder_, preset_, size.batch), 1);
      size.memory = cat(format_bytes(static_cast<uint64_t>(estimate.memory_bytes())), " of ", format_bytes(memory));
      const bool fits =
          estimate.memory_bytes() <= kMemoryShare * static_cast<double>(memory) && estimate.step_flops <= kStepFlops;
      if (size.batch == 1 || (fits && size.batch * 4 <= size.samples)) break;
    }
    size.steps = std::clamp<int64_t>(10 * size.samples / size.batch, 100, 5000);
    write_file_atomically(path, preset(size));
    report({cat("batch: ", size.batch, ", by the planner ", size.memory, " of memory (global_batch_size in ", preset_, ")")},
           "assumed: ");
  }

  static constexpr int64_t kSmallestCrop = 8, kMostSamples = 64;

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
  app.add_option("--task", task, "forecast: fields in time; box: three-dimensional fields to others")
      ->check(CLI::IsMember({"forecast", "box"}))
      ->capture_default_str();
  add_ingest_flags(app, arguments);
  app.remove_option(app.get_option("--box"));
  if (!parse_arguments(application, app, argc, argv)) return 0;
  Initialisation(application, arguments, join(std::vector<std::string>(argv, argv + argc), " ")).run(task);
  return 0;
}

}  // namespace welkin::apps
