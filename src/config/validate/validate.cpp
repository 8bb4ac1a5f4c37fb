// SPDX-License-Identifier: Apache-2.0
// Checks of values against each other.
#include "config/validate/validate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/draft/channel_settings.h"
#include "config/schema/builtin_models.h"
#include "config/schema/checkpoint_dirs.h"
#include "config/schema/early_stopping.h"
#include "config/schema/key.h"
#include "config/validate/validate_mesh.h"
#include "core/duration.h"
#include "core/text.h"

namespace welkin::config {
namespace {

constexpr const char* kCheckpointing = "loop.activation_checkpointing";
constexpr const char* kCheckpointedBlocks = "loop.activation_checkpointing_blocks";

void validate_checkpointed_blocks(Draft& draft) {
  const LoopConfig& loop = draft.config.loop;
  if (!draft.is_sound({kCheckpointing, kCheckpointedBlocks, "model.depth"})) return;
  const CheckpointedPart part = loop.activation_checkpointing.part;
  const bool takes_number =
      part == CheckpointedPart::Mlp || part == CheckpointedPart::Attention || part == CheckpointedPart::Blocks;
  if (!takes_number && loop.activation_checkpointing_blocks > 0) {
    draft.problems.add(
        draft.place(kCheckpointedBlocks),
        cat("blocks to checkpoint without what of them: ", draft.show(kCheckpointedBlocks), ", ", draft.show(kCheckpointing)),
        "Say activation_checkpointing: mlp, attention or blocks, too");
  }
  const std::string& model = draft.config.model.model;
  const bool has_depth = is_one_of(model, key_at("model.depth").models);
  if (!has_depth || loop.activation_checkpointing_blocks <= draft.config.model.depth) return;
  draft.problems.add(draft.place(kCheckpointedBlocks),
                     cat("more blocks than the model has: ", draft.show(kCheckpointedBlocks), ", ", draft.show("model.depth")),
                     "Give as many as there are, or 0 for all");
}

void validate_residual(Draft& draft) {
  constexpr const char* kExcept = "model.residual_except";
  if (draft.config.model.residual || draft.config.model.residual_except.empty()) return;
  draft.problems.add(
      draft.place(kExcept),
      cat("channels are left out of a residual that there is not: ", draft.show(kExcept), ", ", draft.show("model.residual")),
      "Set residual: true, or take residual_except away");
}

void validate_vit(Draft& draft) {
  const ModelConfig& model = draft.config.model;
  const bool has_heads = draft.is_sound({"model.num_heads"});
  if (has_heads && draft.is_sound({"model.embed_dim"}) && model.embed_dim % model.num_heads != 0) {
    draft.problems.add(
        draft.place("model.num_heads"),
        cat("num_heads does not divide embed_dim: ", draft.show("model.num_heads"), ", ", draft.show("model.embed_dim")),
        "Each head needs an equal share of the width");
  }
  const double mlp_width = static_cast<double>(model.embed_dim) * model.mlp_ratio;
  if (draft.is_sound({"model.embed_dim", "model.mlp_ratio"}) && std::llround(mlp_width) < 1) {
    draft.problems.add(draft.place("model.mlp_ratio"),
                       cat("the MLP has no width, embed_dim times mlp_ratio rounds to 0: ", draft.show("model.embed_dim"), ", ",
                           draft.show("model.mlp_ratio")),
                       "Choose a larger mlp_ratio: the product is the hidden width");
  }
  const auto indivisible = [&](int64_t edge) { return edge % model.patch_size != 0; };
  if (draft.is_sound({"model.patch_size", "model.img_size"}) &&
      std::any_of(model.img_size.begin(), model.img_size.end(), indivisible)) {
    draft.problems.add(
        draft.place("model.patch_size"),
        cat("patch_size does not divide img_size: ", draft.show("model.patch_size"), ", ", draft.show("model.img_size")),
        "Choose a patch_size that divides both edges");
  }
  const int64_t tp = draft.config.parallel.tensor_parallel;
  if (has_heads && is_mesh_sound(draft) && model.num_heads % tp != 0) {
    draft.problems.add(draft.place("parallel.tensor_parallel"),
                       cat("tensor_parallel does not divide num_heads: ", draft.show("parallel.tensor_parallel"), ", ",
                           draft.show("model.num_heads")),
                       "Every rank gets whole heads");
  }
}

void validate_unet(Draft& draft) {
  const ModelConfig& model = draft.config.model;
  const CheckpointedPart part = draft.config.loop.activation_checkpointing.part;
  if (part == CheckpointedPart::Mlp || part == CheckpointedPart::Attention) {
    draft.problems.add(
        draft.place(kCheckpointing),
        cat("the U-Net has neither attention nor an MLP: ", draft.show(kCheckpointing), ", ", draft.show("model.model")),
        "Take blocks, a pattern or a budget: levels.2 is all below the first scale");
  }
  if (model.scales == 1) {
    draft.problems.add(draft.place("model.scales"), "scales must be 0 or at least 2: scales=1",
                       "0 chooses six or five by full_scale");
  }
  const int64_t scales = model.scales != 0 ? model.scales : (model.full_scale ? 6 : 5);
  if (!draft.is_sound({"data.data_size", "model.scales"})) return;
  if (draft.config.data.data_size % (int64_t{1} << scales) == 0) return;
  draft.problems.add(draft.place("data.data_size"),
                     cat("data_size is not divisible by 2^scales: ", draft.show("data.data_size"), ", scales=", scales),
                     cat("Use a multiple of ", int64_t{1} << scales, ", or fewer scales"));
}

void validate_boxes(Draft& draft) {
  const DataConfig& data = draft.config.data;
  for (const int64_t edge : data.box_size) {
    if (data.data_size <= edge || !draft.is_sound({"data.data_size", "data.box_size"})) continue;
    draft.problems.add(draft.place("data.data_size"),
                       cat("the crop is larger than the box: ", draft.show("data.data_size"), ", ", draft.show("data.box_size")),
                       "Choose a smaller crop, or give the box's real edge");
  }
  for (const char* path : {"data.vector_channels_in", "data.vector_channels_out"}) {
    const auto& channels = std::string_view(path).ends_with("_in") ? data.vector_channels_in : data.vector_channels_out;
    if (channels.size() % 3 != 0) {
      draft.problems.add(draft.place(path), cat("vectors have three components: ", draft.show(path)), "Give triples of channels");
    }
  }
}

void validate_channel_names(Draft& draft) {
  const DataConfig& data = draft.config.data;
  struct NamedOnce {
    const char *path, *noun;
    std::vector<std::string> names;
  };
  std::array<NamedOnce, 3> rows{{{"data.in_channels", "channel", data.in_channels},
                                 {"data.out_channels", "channel", data.out_channels},
                                 {"data.forcing", "forcing", data.forcing}}};
  for (NamedOnce& row : rows) {
    std::ranges::sort(row.names);
    const auto twice = std::ranges::adjacent_find(row.names);
    if (twice == row.names.end()) continue;
    draft.problems.add(draft.place(row.path),
                       cat("a ", row.noun, " is named twice: ", row.noun, "=", *twice, ", ", draft.show(row.path)),
                       cat("Name each ", row.noun, " once"));
  }
}

void validate_crop(Draft& draft) {
  const DataConfig& data = draft.config.data;
  for (const char* path : {"data.crop_lat", "data.crop_lon"}) {
    const auto& range = std::string_view(path).ends_with("lat") ? data.crop_lat : data.crop_lon;
    if (range.empty()) continue;
    if (!data.crop.empty()) {
      draft.problems.add(draft.place(path),
                         cat("two keys contradict each other: ", draft.show("data.crop"), ", ", draft.show(path)),
                         "Give only one of them");
    }
    const bool is_lat = &range == &data.crop_lat;
    if (range[0] < range[1] && (is_lat || range[1] - range[0] <= 360)) continue;
    draft.problems.add(draft.place(path), cat("a range that is none: ", draft.show(path)),
                       is_lat ? "Give south and north, as in crop: {lat: [35, 60]}"
                              : "Give west and east, at most 360 apart, as in crop: {lon: [-10, 20]}");
  }
}

// Checks the form of their entries. Which channels exist is known only from the files.
void validate_channel_settings(Draft& draft) {
  const RunConfig& config = draft.config;
  const std::array<std::pair<const char*, const std::vector<std::string>*>, 5> lists{
      {{"data.roles", &config.data.roles},
       {"data.normalization", &config.data.normalization},
       {"data.hole_fill", &config.data.hole_fill},
       {"loss.channel_weights", &config.loss.channel_weights},
       {"loss.conservation", &config.loss.conservation}}};
  for (const auto& [path, entries] : lists) {
    for (const std::string& entry : *entries) {
      if (parse_channel_setting(entry)) continue;
      draft.problems.add(draft.place(path), cat("an entry is not channel=value: entry=", entry, ", ", draft.show(path)),
                         "Write for instance [t2m=VALUE, z500=VALUE]");
    }
  }
}

void validate_loader(Draft& draft, const std::vector<Loader>& allowed) {
  const std::optional<Loader> loader = draft.config.data.data_loader_config;
  if (!loader || std::find(allowed.begin(), allowed.end(), *loader) != allowed.end()) return;
  std::vector<std::string_view> kinds;
  for (const Loader kind : allowed) kinds.push_back(name_of(kind));
  draft.problems.add(
      draft.place("data.data_loader_config"),
      cat("this data set has no such loader: ", draft.show("data.data_loader_config"), ", dataset=", draft.config.data.dataset),
      cat("Use ", join(kinds, ", ")));
}

void validate_pairing(Draft& draft) {
  const std::string& model = draft.config.model.model;
  const std::string& dataset = draft.config.data.dataset;
  const bool mismatch = (takes_fields(model) && dataset == "nbody") || (takes_boxes(model) && dataset == "era5");
  if (!mismatch) return;
  draft.problems.add(draft.place("data.dataset"),
                     cat("the model does not take this data set: ", draft.show("model.model"), ", ", draft.show("data.dataset")),
                     cat(join(split(kFieldModels, '|'), ", "), " take fields (era5), ", kBoxModels, " takes boxes (nbody)"));
}

// The key and number of an epoch's samples; 0 = the configuration does not give it.
std::pair<std::string_view, int64_t> known_samples(const RunConfig& config) {
  if (config.data.dataset == "nbody") return {"data.Nsamples", config.data.Nsamples};
  if (config.data.dataset == "era5" && config.data.limit_nsamples) return {"data.limit_nsamples", *config.data.limit_nsamples};
  return {"", 0};
}

void validate_length(Draft& draft) {
  constexpr std::string_view kEpochs = "loop.num_epochs";
  constexpr std::string_view kIters = "loop.num_iters";
  const LoopConfig& loop = draft.config.loop;
  if (loop.num_epochs == 0 && loop.num_iters == 0 && draft.is_sound({kEpochs, kIters})) {
    const bool is_given = draft.has(kEpochs) || draft.has(kIters);
    const std::string_view path = draft.rank(kIters) >= draft.rank(kEpochs) ? kIters : kEpochs;
    draft.problems.add(is_given ? draft.place(path) : "",
                       is_given ? cat("a run has at least one step: ", draft.show(path))
                                : "the length of the run is not given: num_epochs and num_iters are both absent",
                       "Give one of them, for instance --num_epochs 10");
  }
  if (!draft.is_sound({"loop.global_batch_size", "loop.local_batch_size"})) return;
  if (loop.global_batch_size == 0) {
    const bool is_given = draft.has("loop.global_batch_size");
    draft.problems.add(is_given ? draft.place("loop.global_batch_size") : "",
                       is_given ? "global_batch_size must be at least 1: global_batch_size=0"
                                : "the batch size is not given: global_batch_size is absent",
                       "Give --set global_batch_size=16 or --local_batch_size 16");
  }
  const auto [path, samples] = known_samples(draft.config);
  if (samples == 0 || loop.global_batch_size <= samples || !draft.is_sound({path})) return;
  draft.problems.add(
      draft.place("loop.global_batch_size"),
      cat("the batch is larger than the data of an epoch: ", draft.show("loop.global_batch_size"), ", ", draft.show(path)),
      "Use a smaller batch or more samples");
}

void validate_schedule(Draft& draft) {
  const ScheduleConfig& schedule = draft.config.schedule;
  constexpr std::string_view kTable = "schedule.table";
  const bool is_table = schedule.schedule == "table";
  const bool is_ascending = [&] {
    for (size_t i = 2; i + 1 < schedule.table.size(); i += 2) {
      if (schedule.table[i] <= schedule.table[i - 2]) return false;
    }
    return true;
  }();
  if (is_table && (schedule.table.empty() || schedule.table.size() % 2 != 0 || !is_ascending)) {
    draft.problems.add(draft.place(kTable), cat("a table is step, rate, step, rate with rising steps: ", draft.show(kTable)),
                       "Write for instance --set lr_schedule.table=[0,1e-3,1000,0]");
  }
  const std::optional<Compat> compat = draft.config.loop.compat;
  const bool compat_unet = compat == Compat::Sc21 || compat == Compat::Sc22;
  const std::string& model = draft.config.model.model;
  if ((compat_unet && model == "vit") || (compat && !compat_unet && model == "unet3d")) {
    draft.problems.add(draft.place("loop.compat"),
                       cat("that tutorial has another model: ", draft.show("loop.compat"), ", ", draft.show("model.model")),
                       "sc21 and sc22 are the U-Net's, sc23 and dl4sci25 the ViT's");
  }
}

// Checks a micro-batch that is chosen by memory against other keys for the batch or for memory.
void validate_micro_batch(Draft& draft) {
  constexpr const char* kPath = "loop.micro_batch_size";
  if (!draft.is_sound({kPath, kCheckpointing}) || !draft.config.loop.micro_batch_size.is_auto) return;
  if (draft.config.parallel.rank_invariant) {
    draft.problems.add(
        draft.place(kPath),
        cat("rank_invariant divides the batch itself: ", draft.show(kPath), ", ", draft.show("parallel.rank_invariant")),
        "Leave one of them out");
  }
  if (draft.config.loop.activation_checkpointing.part == CheckpointedPart::Budget) {
    draft.problems.add(draft.place(kPath),
                       cat("two keys would choose by memory at once: ", draft.show(kPath), ", ", draft.show(kCheckpointing)),
                       "Give a number for micro_batch_size, or parts for activation_checkpointing");
  }
}

void validate_early_stopping(Draft& draft) {
  constexpr std::string_view kPath = "loop.early_stopping";
  std::string problem;
  parse_early_stopping(draft.config.loop.early_stopping, problem);
  if (problem.empty()) return;
  draft.problems.add(draft.place(kPath), cat("early_stopping cannot be read, ", problem, ": ", draft.show(kPath)),
                     "Write for instance --early_stopping val_loss,5");
}

void validate_survival(Draft& draft) {
  constexpr std::string_view kDirs = "loop.checkpoint_dirs", kLimit = "loop.time_limit", kRequeue = "loop.requeue";
  const LoopConfig& loop = draft.config.loop;
  std::string problem;
  const auto dirs = parse_checkpoint_dirs(loop.checkpoint_dirs, problem);
  if (!problem.empty()) {
    draft.problems.add(draft.place(kDirs), cat("checkpoint_dirs cannot be read, ", problem, ": ", draft.show(kDirs)),
                       "Write for instance --checkpoint_dirs fast:/local:50:2,safe:/project:1000");
  }
  if (loop.checkpoint_interval.is_auto && loop.mtbf == 0) {
    draft.problems.add(draft.place("loop.checkpoint_interval"),
                       "the best interval follows from how often nodes fail, which is not said: checkpoint_interval=auto, mtbf=0",
                       "Give --mtbf, the mean hours between failures of one node, for instance --mtbf 6000");
  }
  if (!loop.time_limit.empty() && parse_duration_s(loop.time_limit).value_or(0) == 0) {
    draft.problems.add(draft.place(kLimit), cat("this is no duration: ", draft.show(kLimit)),
                       "Write minutes, or [days-]hours:minutes:seconds, as for sbatch --time");
  }
  if (loop.requeue && !loop.resume) {
    draft.problems.add(draft.place(kRequeue), "a job that is queued again begins with --resume: requeue=true, resume=false",
                       "Give --resume as well: a run without a checkpoint begins with it, too");
  }
}

void validate_offload(Draft& draft) {
  const BackendConfig& backend = draft.config.backend;
  constexpr std::string_view kOffload = "backend.offload", kPath = "backend.offload_path";
  const auto refuse = [&](std::string_view path, const std::string& what, std::string_view remedy) {
    draft.problems.add(draft.place(path), cat(what, ": ", draft.show(path)), std::string(remedy));
  };
  if (!draft.is_sound({kOffload})) return;
  const auto has = [&](std::string_view what) { return std::ranges::find(backend.offload, what) != backend.offload.end(); };
  if (backend.offload.empty()) {
    if (!backend.offload_path.empty()) refuse(kPath, "nothing is offloaded", "Say what: --offload optimizer");
    return;
  }
  if (draft.config.loop.device == DeviceChoice::Cpu && backend.offload_path.empty()) {
    refuse(kOffload, "a run on a CPU needs a folder for what it offloads", "Name one on a local disk: --offload_path DIR");
  }
  if (has("parameters") && backend.offload_path.empty()) {
    refuse(kOffload, "weights leave the memory for a file alone", "Name a folder on a local disk: --offload_path DIR");
  }
  const ShardStage stage = draft.config.parallel.shard;
  if (has("parameters") && (stage == ShardStage::Optimizer || stage == ShardStage::Gradients)) {
    refuse(kOffload, "weights that every rank gathers whole stay in memory, shard is optimizer or gradients",
           "Say --shard full, whose pieces leave the memory, or leave parameters out");
  }
  if (has("activations") && draft.config.loop.activation_checkpointing.part == CheckpointedPart::Budget) {
    refuse(kOffload, "a budget counts activations that stay in memory, activation_checkpointing=budget",
           "Take activation_checkpointing: blocks, or leave activations out");
  }
  if (backend.cuda_graph) refuse(kOffload, "a recorded step cannot read from a disk, cuda_graph=true", "Leave one of them out");
}

}  // namespace

void validate_model(Draft& draft) {
  if (draft.config.model.model == "vit") validate_vit(draft);
  validate_residual(draft);
  validate_checkpointed_blocks(draft);
  if (draft.config.model.model == "unet3d") validate_unet(draft);
}

void validate_data(Draft& draft) {
  const std::string& dataset = draft.config.data.dataset;
  validate_pairing(draft);
  validate_channel_settings(draft);
  if (dataset.empty() && !draft.config.model.model.empty()) {
    draft.problems.add("", cat("the data set is not given: ", draft.show("model.model")),
                       "Name it by the key `dataset`: era5, nbody or a plug-in's");
  }
  if (dataset == "nbody") {
    validate_boxes(draft);
    validate_channel_names(draft);
    validate_loader(draft, {Loader::LowMem, Loader::InMem, Loader::DaliLowMem, Loader::Synthetic});
  }
  if (dataset == kOnline) validate_online(draft);
  if (dataset == "era5" || dataset == kOnline) validate_channel_names(draft);
  if (dataset == "era5") {
    validate_crop(draft);
    validate_loader(draft, {Loader::PyTorch, Loader::Dali, Loader::Synthetic});
  }
}

void validate_loop(Draft& draft, int64_t world_size) {
  validate_mesh(draft, world_size);
  validate_length(draft);
  validate_schedule(draft);
  validate_early_stopping(draft);
  validate_survival(draft);
  validate_micro_batch(draft);
  validate_optimizer(draft);
  validate_offload(draft);
  validate_health(draft);
  validate_rollout(draft);
  const SwitchConfig& switches = draft.config.switches;
  if (switches.enable_benchy && switches.enable_manual_profiling) {
    draft.problems.add(draft.place("switches.enable_manual_profiling"),
                       "enable_benchy and enable_manual_profiling exclude each other", "Measure first, then profile");
  }
}

}  // namespace welkin::config
