// SPDX-License-Identifier: Apache-2.0
// Keys of the same meaning: the value of higher rank (flag over preset over file, own over inherited) holds for
// both.
#include <optional>
#include <string>

#include "config/draft/channel_settings.h"
#include "config/resolve/derive.h"
#include "config/schema/key.h"
#include "core/text.h"

namespace welkin::config {
namespace {

void contradiction(Draft& draft, std::string_view a, std::string_view b) {
  draft.problems.add(draft.place(a), cat("two keys contradict each other: ", draft.show(a), ", ", draft.show(b)),
                     "Give only one of them");
}

// The one of two keys that counts; Tie when neither is given or they agree in rank.
enum class Winner { First, Second, Tie };
Winner winner(const Draft& draft, std::string_view first, std::string_view second) {
  if (draft.rank(first) == draft.rank(second)) return Winner::Tie;
  return draft.rank(first) > draft.rank(second) ? Winner::First : Winner::Second;
}

template <typename T>
void settle_equal(Draft& draft, std::string_view first, T& first_value, std::string_view second, T& second_value) {
  switch (winner(draft, first, second)) {
    case Winner::First:
      second_value = first_value;
      return draft.derived(second, key_at(first).flat);
    case Winner::Second:
      first_value = second_value;
      return draft.derived(first, key_at(second).flat);
    case Winner::Tie:
      if (first_value != second_value) contradiction(draft, first, second);
  }
}

void settle_length(Draft& draft) {
  constexpr std::string_view kEpochs = "loop.num_epochs";
  constexpr std::string_view kIters = "loop.num_iters";
  LoopConfig& loop = draft.config.loop;
  if (loop.num_epochs == 0 || loop.num_iters == 0) return;
  switch (winner(draft, kEpochs, kIters)) {
    case Winner::First:
      loop.num_iters = 0;
      return draft.derived(kIters, "num_epochs, which replaces it");
    case Winner::Second:
      loop.num_epochs = 0;
      return draft.derived(kEpochs, "num_iters, which replaces it");
    case Winner::Tie:
      contradiction(draft, kEpochs, kIters);
  }
}

void settle_precision(Draft& draft) {
  constexpr std::string_view kAmpMode = "precision.amp_mode";
  constexpr std::string_view kSwitch = "precision.enable_amp";
  PrecisionConfig& precision = draft.config.precision;
  const bool is_on = precision.amp_mode != AmpMode::None;
  switch (winner(draft, kAmpMode, kSwitch)) {
    case Winner::Second:
      if (is_on == precision.enable_amp) break;
      precision.amp_mode = precision.enable_amp ? AmpMode::Fp16 : AmpMode::None;
      return draft.derived(kAmpMode, "enable_amp");
    case Winner::First:
      precision.enable_amp = is_on;
      return draft.derived(kSwitch, "amp_mode");
    case Winner::Tie:
      if (is_on != precision.enable_amp) contradiction(draft, kAmpMode, kSwitch);
  }
}

// Names determine the number of channels. `rank` is that of the key that names them.
void settle_count(Draft& draft, std::string_view names, int64_t rank, const std::vector<std::string>& wanted,
                  std::string_view number, int64_t& count) {
  const auto size = static_cast<int64_t>(wanted.size());
  if (size == 0 || count == size) return;
  if (draft.has(number) && draft.rank(number) >= rank) return contradiction(draft, names, number);
  count = size;
  draft.derived(number, key_at(names).flat);
}

void settle_channels(Draft& draft) {
  constexpr std::string_view kIn = "data.in_channels", kOut = "data.out_channels";
  DataConfig& data = draft.config.data;
  if (data.dataset == "nbody") {  // input and target are different quantities
    ModelConfig& model = draft.config.model;
    settle_count(draft, kIn, draft.rank(kIn), data.in_channels, "model.N_in_channels", model.N_in_channels);
    return settle_count(draft, kOut, draft.rank(kOut), data.out_channels, "model.N_out_channels", model.N_out_channels);
  }
  const bool follows_input = data.out_channels.empty() && !data.in_channels.empty();
  if (follows_input) {
    data.out_channels = data.in_channels;
    draft.derived(kOut, "in_channels");
  }
  const auto follow_roles = [&](const std::vector<std::string>& names, std::string_view number, int64_t& count) {
    const bool is_said = !data.roles.empty() || !data.variables.empty();
    if (!is_said || !names.empty() || draft.has(number)) return;
    count = 0;
    draft.derived(number, data.roles.empty() ? "variables" : "roles");
  };
  follow_roles(data.in_channels, "model.n_in_channels", draft.config.model.n_in_channels);
  follow_roles(data.out_channels, "model.n_out_channels", draft.config.model.n_out_channels);
  const int64_t rank = draft.rank(kIn);
  settle_count(draft, kIn, rank, data.in_channels, "model.n_in_channels", draft.config.model.n_in_channels);
  settle_count(draft, kOut, follows_input ? rank : draft.rank(kOut), data.out_channels, "model.n_out_channels",
               draft.config.model.n_out_channels);
}

// Times and levels are chosen only from an archive, whose files are read where they are.
void check_archive(Draft& draft) {
  const DataConfig& data = draft.config.data;
  constexpr std::string_view kVariables = "data.variables", kStage = "data.stage";
  const auto refuse = [&](std::string_view path, std::string_view what, const std::string& values, std::string_view remedy) {
    draft.problems.add(draft.place(path), cat(what, ": ", values), std::string(remedy));
  };
  if (!data.variables.empty()) {
    if (!data.stage) return;
    return refuse(kStage, "an archive is not copied to the node", cat(draft.show(kStage), ", ", draft.show(kVariables)),
                  "Leave stage out, or make training files with welkin data ingest");
  }
  const auto check = [&](std::string_view path, bool is_chosen) {
    if (!is_chosen) return;
    refuse(path, "this chooses of an archive, whose variables are not named", draft.show(path),
           "Give variables too, as in variables: [2m_temperature, geopotential@500]");
  };
  check("data.levels", !data.levels.empty());
  check("data.train_times", !data.train_times.empty());
  check("data.valid_times", !data.valid_times.empty());
  check("data.test_times", !data.test_times.empty());
}

// Refuses the keys that do not go with several data sets.
void check_data_sets(Draft& draft) {
  const RunConfig& config = draft.config;
  constexpr std::string_view kDataSets = "data.datasets";
  if (config.data.datasets.empty()) return;
  const auto refuse = [&](bool is_wrong, std::string_view path, const char* what, const char* remedy) {
    if (is_wrong) draft.problems.add(draft.place(path), cat(what, ": ", draft.show(kDataSets), ", ", draft.show(path)), remedy);
  };
  refuse(config.data.stage.has_value(), "data.stage", "several data sets are not copied to the node", "Leave stage out");
  for (const std::string& entry : config.data.datasets) {
    if (parse_data_set(entry)) continue;
    draft.problems.add(draft.place(kDataSets), cat("an entry is no FOLDER=weight: entry=", entry, ", ", draft.show(kDataSets)),
                       "Write for instance [/data/era5=3, /data/cmip6=1], with weights above 0");
  }
}

// Number of ranks that hold different samples; nullopt when the sizes do not fit, which validate.h reports.
std::optional<int64_t> data_parallel_size(const RunConfig& config, int64_t world_size) {
  const ParallelConfig& parallel = config.parallel;
  for (const int64_t size : {parallel.tensor_parallel, parallel.context_parallel, parallel.pipeline_parallel}) {
    if (size < 1 || size > world_size) return {};
  }
  const int64_t model_size = parallel.model_size();
  if (model_size > world_size || world_size % model_size != 0) return {};
  return world_size / model_size;
}

}  // namespace

void resolve_synonyms(Draft& draft) {
  RunConfig& config = draft.config;
  settle_equal(draft, "optimizer.lr", config.optimizer.lr, "schedule.start_lr", config.schedule.start_lr);
  settle_equal(draft, "parallel.tensor_parallel", config.parallel.tensor_parallel, "parallel.row_parallel_size",
               config.parallel.row_parallel_size);
  settle_precision(draft);
  settle_length(draft);
  settle_channels(draft);
  check_archive(draft);
  check_data_sets(draft);
}

void resolve_batch(Draft& draft, int64_t world_size) {
  constexpr std::string_view kGlobalSize = "loop.global_batch_size";
  constexpr std::string_view kLocalSize = "loop.local_batch_size";
  LoopConfig& loop = draft.config.loop;
  const auto replicas = data_parallel_size(draft.config, world_size);
  const bool is_sound = draft.is_sound({kGlobalSize, kLocalSize, "parallel.tensor_parallel", "parallel.row_parallel_size",
                                        "parallel.context_parallel", "parallel.pipeline_parallel", "parallel.spatial"});
  if (!replicas || !is_sound) return;
  const Winner which = winner(draft, kGlobalSize, kLocalSize);
  if (which == Winner::Second && loop.local_batch_size) {
    loop.global_batch_size = *loop.local_batch_size * *replicas;
    return draft.derived(kGlobalSize, cat("local_batch_size times ", *replicas));
  }
  if (which == Winner::Tie && loop.local_batch_size && *loop.local_batch_size * *replicas != loop.global_batch_size) {
    return contradiction(draft, kGlobalSize, kLocalSize);
  }
  if (loop.global_batch_size % *replicas != 0) {
    return draft.problems.add(
        draft.place(kGlobalSize),
        cat("the batch cannot be split evenly: ", draft.show(kGlobalSize), ", data-parallel ranks=", *replicas),
        "Choose a multiple, or give --local_batch_size");
  }
  loop.local_batch_size = loop.global_batch_size / *replicas;
  draft.derived(kLocalSize, cat("global_batch_size over ", *replicas));
}

}  // namespace welkin::config
