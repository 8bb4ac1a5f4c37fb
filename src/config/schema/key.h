// SPDX-License-Identifier: Apache-2.0
// The schema: one row per key, from which parsing, flags, --set, validation, nearest names, printing and the docs are made. To
// add a key: a field in run_config.h and a row in keys_<component>.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/schema/run_config.h"

namespace welkin::config {

// A set of tutorials.
using TutorialBits = uint8_t;
inline constexpr TutorialBits kSc21 = 1, kSc22 = 2, kSc23 = 4, kDl25 = 8;
inline constexpr TutorialBits kUnetTutorials = kSc21 | kSc22, kVitTutorials = kSc23 | kDl25, kAllTutorials = 15;

TutorialBits bit_of(Tutorial tutorial);  // 0 for None

// The runs in which a key has an effect: any run, a model, or a kind of data set. A plug-in's model or
// data set may read every key.
enum class Scope { Any, Vit, Unet, Fields, Boxes, Online };

// The verbs whose short --help names a key: none, all that take a configuration, those that make steps, those that train. A
// verb names its own keys and those of the sorts before it.
enum class Common { Nobody, EveryVerb, Steps, Training };

// Gives the value in a RunConfig; the type of the reference is the type of the key.
template <typename T>
using Accessor = T& (*)(RunConfig&);
using Field =
    std::variant<Accessor<bool>, Accessor<int64_t>, Accessor<uint64_t>, Accessor<double>, Accessor<std::string>,
                 Accessor<std::optional<int64_t>>, Accessor<std::optional<double>>, Accessor<std::optional<std::string>>,
                 Accessor<std::vector<int64_t>>, Accessor<std::vector<double>>, Accessor<std::vector<std::string>>,
                 Accessor<Tutorial>, Accessor<AmpMode>, Accessor<NonFiniteAction>, Accessor<SpikeAction>, Accessor<BadSample>,
                 Accessor<NanPolicy>, Accessor<Residence>, Accessor<Augmentation>, Accessor<RateScaling>, Accessor<WarmupForm>,
                 Accessor<CropRule>, Accessor<PairRule>, Accessor<ValidationRule>, Accessor<ShardRule>, Accessor<LengthRule>,
                 Accessor<RateRule>, Accessor<FirstBatchRule>, Accessor<Tf32>, Accessor<AttentionForm>, Accessor<Gemm>,
                 Accessor<MatmulPrecision>, Accessor<InstructionSet>, Accessor<ContextMode>, Accessor<ContextIo>,
                 Accessor<PipelineSchedule>, Accessor<WireupInfo>, Accessor<WireupStore>, Accessor<GradientDtype>,
                 Accessor<ShardStage>, Accessor<GatherDtype>, Accessor<OptimizerState>, Accessor<MuonScale>,
                 Accessor<ResumedOptimizer>, Accessor<CheckpointOverlap>, Accessor<Checkpointing>, Accessor<MicroBatchSize>,
                 Accessor<CheckpointInterval>, Accessor<DeviceChoice>, Accessor<FolderRule>, Accessor<QkvLayout>,
                 Accessor<std::optional<Loader>>, Accessor<std::optional<Compat>>, Accessor<SpatialRanks>,
                 Accessor<LevelWeighting>, Accessor<GridType>, Accessor<StepCounts>, Accessor<MultistepGradient>>;

template <auto... Members>
auto& member(RunConfig& config) {
  return (config.*....*Members);
}

// Bounds of a number, or of every element of a list.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false, open_max = false;  // the bound itself is excluded
};
constexpr Range at_least(double min) { return {.min = min}; }
constexpr Range above(double min) { return {.min = min, .open_min = true}; }
constexpr Range between(double min, double max) { return {.min = min, .max = max}; }
constexpr Range rate() { return {.min = 0, .max = 1, .open_max = true}; }

struct Key {
  std::string_view flat;  // the tutorials' name; inside a map of theirs with a dot: lr_schedule.start_lr
  std::string_view path;  // dotted by component: schedule.start_lr
  Field field;
  std::string_view summary;  // one sentence without full stop
  std::string_view unit = "";
  Range range = {};
  std::string_view choices = "";  // the allowed strings, separated by '|'; schema() fills in an enum's names
  int64_t size = 0;               // a list's length; 0 = any. An empty list stays allowed where it is the default
  std::string_view aliases = "";  // further flat names, separated by '|'
  TutorialBits tutorials = 0;     // the tutorials whose files hold it; 0 = a key of ours
  Scope scope = Scope::Any;
  std::string_view models = "";     // built-in models that read it, separated by '|'; "": as the scope says
  bool inert = false;               // known and without effect
  bool null_is_first = false;       // of an enum: null stands for its first value
  bool is_flag = false;             // also --flat
  TutorialBits flag_tutorials = 0;  // the tutorials whose programs take that flag; 0 = a flag of ours
  bool free = false;                // may differ between two runs of one folder (same_run.h)
  bool pinned = false;              // must not even differ when a run is resumed (same_run.h)
  std::string_view root = "";       // a path: "data" or "logs", whose prefix is rebound
  bool is_folder = false;           // a folder as it stands
  Common common = Common::Nobody;
};

// All rows, by component in the order of RunConfig.
const std::vector<Key>& schema();

// The names of the enum that the field holds, separated by '|'; empty where it holds none.
std::string_view enum_names(const Field& field);

// The row by flat name, alias or dotted path; null when unknown.
const Key* find_key(std::string_view name);
// The row of a dotted path, which must exist.
const Key& key_at(std::string_view path);
// True if a name continues after `prefix` and a dot: lr_schedule, model, model.weight_init.
bool is_key_prefix(std::string_view prefix);
// Flat names, aliases and paths, for nearest names.
const std::vector<std::string>& all_key_names();

std::vector<std::string_view> split(std::string_view text, char separator);  // no parts for an empty text

// True if the key has an effect in a run with this model and data set. A plug-in's may read any key of its component.
bool has_effect(const Key& key, const RunConfig& config);

// The component that a path begins with: "schedule"; "run" for a path without a dot.
std::string_view component_of(const Key& key);

// The rows by component.
std::vector<Key> model_keys();
std::vector<Key> data_keys();  // with field_keys()
std::vector<Key> field_keys();
std::vector<Key> optimization_keys();
std::vector<Key> rule_keys();
std::vector<Key> backend_keys();
std::vector<Key> parallel_keys();
std::vector<Key> health_keys();
std::vector<Key> loop_keys();

}  // namespace welkin::config
