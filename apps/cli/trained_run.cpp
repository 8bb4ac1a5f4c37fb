// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/trained_run.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>

#include "apps/cli/dry_run.h"
#include "apps/cli/flags.h"
#include "apps/cli/help.h"
#include "apps/cli/rank_run.h"
#include "config/resolve/paths.h"
#include "config/resolve/resolve.h"
#include "config/schema/builtin_models.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/online/online_data.h"
#include "parallel/mesh/run_mesh.h"
#include "train/device/memory_report.h"
#include "train/interchange/model_package.h"
#include "train/interchange/sample_spec_json.h"
#include "train/interchange/stated_data.h"
#include "train/learn/registries.h"
#include "train/run/run_folder.h"
#include "train/step/layout.h"

namespace welkin::apps {
namespace {

namespace fs = std::filesystem;

// A checkpoint holds whole tensors: one process or ranks of any mesh can read it, whatever trained it. Forward passes need no
// schedule and shard no training state. Flags that the user gives come later and win.
const std::vector<std::string> kOneProcess = {"--set", "tensor_parallel=1",       "--set", "context_parallel=1",
                                              "--set", "pipeline_parallel=1",     "--set", "pipeline_split=null",
                                              "--set", "sequence_parallel=false", "--set", "local_batch_size=null",
                                              "--set", "spatial=1x1x1",           "--set", "pipeline_schedule=1f1b",
                                              "--set", "pipeline_chunks=0",       "--set", "shard=none"};

// Arguments with `RUN_FOLDER` replaced by the flags that name its configuration.
struct Arguments {
  std::vector<std::string> words;
  std::optional<fs::path> run_folder;
};

void add_files_of_package(std::vector<std::string>& words, const fs::path& folder) {
  const train::interchange::ModelPackage package(folder);
  for (const auto& [key, path] : package.files()) {
    words.insert(words.begin() + 5, {"--set", cat(key, "=", path.string())});
  }
}

Arguments expand(int argc, char** argv) {
  Arguments arguments{{argv, argv + argc}, {}};
  if (argc < 2 || std::string_view(argv[1]).starts_with("-")) return arguments;
  const fs::path folder = argv[1];
  const fs::path file = folder / "config.yaml";
  if (!fs::exists(file)) {
    throw ConfigError(argv[0], cat("this is no run folder, it holds no config.yaml: path=", folder.string()),
                      "Give <expdir>/<config>/<W>GPU/<run_num>, or the flags that the run was trained with");
  }
  const std::string preset = config::saved_values(read_file(file, 1 << 24), file.string()).config;
  arguments.words.erase(arguments.words.begin() + 1);
  arguments.words.insert(arguments.words.begin() + 1, {"--yaml_config", file.string(), "--config", preset});
  arguments.words.insert(arguments.words.begin() + 5, kOneProcess.begin(), kOneProcess.end());
  if (train::interchange::is_package(folder)) add_files_of_package(arguments.words, folder);
  arguments.run_folder = folder;
  return arguments;
}

void check_whole_model(const char* verb, const config::ParallelConfig& parallel) {
  if (parallel.model_size() == 1) return;
  throw ConfigError(verb,
                    cat("each process of this verb holds a whole model: tensor_parallel=", parallel.tensor_parallel,
                        ", context_parallel=", parallel.context_parallel, ", pipeline_parallel=", parallel.pipeline_parallel,
                        ", blocks of spatial=", parallel.spatial.size()),
                    "Leave them out: a checkpoint of any layout is read");
}

// Describes the pairs of a run that another program fed and that were not kept. Null for other runs.
std::unique_ptr<data::Dataset> stated_pairs(const TrainedRun& run) {
  const fs::path held_out = data::held_out_file(run.config), file = run.choice.run_folder / train::RunFolder::kDataFile;
  if (run.config.data.dataset != config::kOnline || fs::exists(held_out) || !fs::exists(file)) return nullptr;
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  data::SampleSpec spec = train::interchange::sample_spec_from_json(
      read_file(file, kMostBytes), {.path = file.string(), .component = "data", .remedy = "Restore it from a copy of the run"});
  return std::make_unique<train::interchange::StatedData>(
      std::move(spec), cat("the pairs that the run was trained on were not kept: run=", run.choice.run_folder.string()),
      "Name a folder for those held out with valid_data_path before the run begins");
}

}  // namespace

std::optional<TrainedRun> parse_trained_run(Application& application, int argc, char** argv, std::vector<config::ExtraFlag> extra,
                                            const std::string& operand, int64_t processes) {
  extra.push_back({"checkpoint", "WHICH",
                   "best (smallest validation loss, default), newest, a step, or a path, also to a .pt or .safetensors file"});
  extra.push_back({"ema", "", "use the run's moving average of weights (ema_decay)", config::Listed::InFull});
  extra.push_back({"split", "PART", "part of the data: train, valid (default) or test"});
  const Arguments arguments = expand(argc, argv);
  std::vector<const char*> words;
  for (const std::string& word : arguments.words) words.push_back(word.c_str());
  TrainedRun run{.line = config::parse(static_cast<int>(words.size()), words.data(), extra), .config = {}, .choice = {}};
  if (run.line.help != config::Help::Off) {
    print_help(application,
               {.program = argv[0],
                .usage = {cat("RUN_FOLDER ", operand, operand.empty() ? "" : " ", "[flags]"),
                          "--yaml_config FILE [--config PRESET] [flags of its training]"},
                .extra = extra},
               run.line.help);
    return {};
  }
  const int64_t ranks = processes == 1 ? 1 : config::kOneReplica;
  const config::Resolved resolved = config::resolve(run.line, ranks, application.registries.known_names());
  if (processes == kWholeModels) check_whole_model(argv[0], resolved.config.parallel);
  if (is_dry_run(run.line)) {
    print_configuration(application, run.line, resolved, std::max(processes, kWorldSize));
    return {};
  }
  run.config = resolved.config;
  run.choice.run_folder = arguments.run_folder.value_or(config::run_folder(run.config, kWorldSize));
  const bool is_package = train::interchange::is_package(run.choice.run_folder);
  const std::string own = is_package ? fs::absolute(run.choice.run_folder).string() : "best";
  run.choice.checkpoint = text_flag(run.line, "checkpoint", own);
  run.choice.report = [&application](const std::string& note) { application.err << cat("warning: ", note, "\n") << std::flush; };
  run.choice.averaged = has_flag(run.line, "ema");
  run.choice.split = train::parse_split(text_flag(run.line, "split", "valid"));
  return run;
}

void check_ranks(const std::string& verb, const TrainedRun& run, const launch::RankInfo& place) {
  if (place.world_size == 1) return;
  parallel::mesh_of(run.config.parallel, place.world_size);
  if (run.config.parallel.shard == config::ShardStage::None) return;
  throw ConfigError(verb, "replicas have whole weights, no training state is shared out: shard is set",
                    "Say --shard none; to divide the model, give --tensor_parallel, --pipeline_parallel or --spatial");
}

parallel::World join_ranks(TrainedRun& run, const launch::RankInfo& place, std::ostream& err) {
  parallel::World world;
  if (place.world_size > 1) world = parallel::World::connect(place, world_options(run.config));
  run.choice.world = world.world_group();
  run.choice.groups = train::make_mesh_groups(run.config.parallel, world);
  run.choice.local_rank = place.local_rank;
  run.choice.local_size = place.local_size;
  run.choice.report = [&err](const std::string& note) { err << cat("warning: ", note, "\n") << std::flush; };
  if (!train::is_first_of_replica(run.choice.groups)) run.choice.report = {};
  return world;
}

std::unique_ptr<train::TrainedModel> open_model(const train::Registries& registries, const TrainedRun& run) {
  const fs::path& folder = run.choice.run_folder;
  if (!train::interchange::is_package(folder))
    return std::make_unique<train::TrainedModel>(registries, run.config, run.choice, stated_pairs(run));
  return std::make_unique<train::TrainedModel>(registries, run.config, run.choice,
                                               train::interchange::ModelPackage(folder).data());
}

void with_trained_model(Application& application, const TrainedRun& run,
                        const std::function<void(const train::TrainedModel&)>& work) {
  std::unique_ptr<train::TrainedModel> model;
  try {
    model = std::make_unique<train::TrainedModel>(application.registries, run.config, run.choice, stated_pairs(run));
    for (const std::string& note : model->dataset().notes()) application.err << "note: " << note << "\n";
    for (const std::string& warning : model->dataset().warnings()) application.err << "warning: " << warning << "\n";
    work(*model);
  } catch (const std::exception&) {
    const train::KnownMemory known{.weights = model ? model->weight_bytes() : 0, .rest = model ? "activations" : "weights"};
    throw train::explained(train::memory_error_in_flight(run.config), known, run.config);
  }
}

}  // namespace welkin::apps
