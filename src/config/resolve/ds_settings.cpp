// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/ds_settings.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "config/deepspeed/ds_config.h"
#include "config/schema/key.h"
#include "config/schema/value.h"
#include "config/yaml/yaml_document.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::config {
namespace {

constexpr std::string_view kGlobal = "loop.global_batch_size", kLocal = "loop.local_batch_size", kMicro = "loop.micro_batch_size",
                           kMode = "precision.amp_mode";

// Keys of one meaning: a flag for the second counts for the first.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSynonyms{
    {{"optimizer.lr", "schedule.start_lr"},
     {"parallel.tensor_parallel", "parallel.row_parallel_size"},
     {kMode, "precision.enable_amp"},
     {kGlobal, kLocal}}};

std::string_view first_name(std::string_view path) {
  for (const auto& [first, second] : kSynonyms) {
    if (path == second) return first;
  }
  return path;
}

class DsSettings {
 public:
  DsSettings(Draft& draft, const DsConfig& ds, const std::vector<Setting>& flags, int64_t world_size)
      : draft_(draft), ds_(ds), flags_(flags), probe_(draft) {
    std::vector<Setting> both;
    for (const DsSetting& setting : ds.settings) set(setting.path, setting.text, setting.place);
    both = settings_;
    both.insert(both.end(), flags.begin(), flags.end());
    apply_settings(probe_, both);
    replicas_ = replicas(world_size);
  }

  std::vector<Setting> run() {
    turn_modes_off();
    settle_batch();
    settle_length();
    refuse_contradictions();
    add_notes();
    return std::move(settings_);
  }

 private:
  void set(std::string_view path, const std::string& text, const std::string& place) {
    settings_.push_back({.key = std::string(path), .text = text, .flag = place});
  }

  // 0 where the ranks do not divide evenly, which validate.h reports.
  int64_t replicas(int64_t world_size) const {
    const ParallelConfig& parallel = probe_.config.parallel;
    const bool is_first = probe_.rank("parallel.tensor_parallel") >= probe_.rank("parallel.row_parallel_size");
    const int64_t tp = is_first ? parallel.tensor_parallel : parallel.row_parallel_size;
    const int64_t cp = parallel.context_parallel;
    const int64_t pp = parallel.pipeline_parallel;
    for (const int64_t size : {tp, cp, pp}) {
      if (size < 1 || size > world_size) return 0;
    }
    const int64_t model_size = tp * cp * pp * parallel.spatial.size();
    return world_size % model_size == 0 ? world_size / model_size : 0;
  }

  void turn_modes_off() {
    for (const auto& [mode, place] : ds_.modes_off) {
      if (draft_.config.precision.amp_mode == mode || probe_.config.precision.amp_mode == mode) set(kMode, "none", place);
    }
  }

  // Samples of a step by our own keys; 0 = not given.
  int64_t own_batch() const {
    const LoopConfig& loop = probe_.config.loop;
    const bool is_local = loop.local_batch_size && probe_.rank(kLocal) > probe_.rank(kGlobal);
    return is_local ? *loop.local_batch_size * replicas_ : loop.global_batch_size;
  }

  // train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x replicas.
  void settle_batch() {
    const auto& [train, micro, steps] = std::tie(ds_.train_batch, ds_.micro_batch, ds_.accumulation);
    if (replicas_ == 0 || (!train.value && !micro.value && !steps.value)) return;
    constexpr int64_t kMost = int64_t{1} << 30;
    for (const DsWhole* number : {&train, &micro, &steps}) {
      if (number->value.value_or(0) > kMost) return draft_.problems.add(number->place, "is too large", "Use a smaller number");
    }
    const bool follows = !train.value && !train.is_auto && micro.value && (steps.value || !steps.is_auto);
    const int64_t of_micro = micro.value.value_or(1) * steps.value.value_or(1) * replicas_;
    const int64_t total = train.value ? *train.value : follows || own_batch() == 0 ? of_micro : own_batch();
    const std::string& place = train.value ? train.place : micro.value ? micro.place : steps.place;
    const bool is_whole = micro.value && steps.value ? total == of_micro : total % of_micro == 0;
    if (!is_whole) return uneven(total, place);
    if (train.value || total != own_batch()) set(kGlobal, cat(total), place);
    if (micro.value) {
      set(kMicro, cat(*micro.value), micro.place);
    } else if (steps.value) {
      set(kMicro, cat(total / (*steps.value * replicas_)), steps.place);
    }
  }

  void uneven(int64_t total, const std::string& place) {
    std::string product = cat("data-parallel ranks=", replicas_);
    if (ds_.accumulation.value) product = cat("gradient_accumulation_steps=", *ds_.accumulation.value, ", ", product);
    if (ds_.micro_batch.value) product = cat("train_micro_batch_size_per_gpu=", *ds_.micro_batch.value, ", ", product);
    draft_.problems.add(place,
                        cat("the batch is not the product of its parts: ",
                            ds_.train_batch.value ? "train_batch_size=" : "global_batch_size=", total, ", ", product),
                        "Leave one of the parts out, or say \"auto\"");
  }

  // A schedule ends with the run.
  void settle_length() {
    const DsWhole& steps = ds_.total_steps;
    const LoopConfig& loop = probe_.config.loop;
    if (!steps.value) return;
    if (loop.num_iters == 0 && loop.num_epochs == 0) return set("loop.num_iters", cat(*steps.value), steps.place);
    if (probe_.rank("loop.num_epochs") > probe_.rank("loop.num_iters")) {
      return draft_.notes.push_back(cat(steps.place, "=", *steps.value, " has no effect: the schedule ends with the run, ",
                                        probe_.show("loop.num_epochs")));
    }
    if (loop.num_iters == *steps.value) return;
    draft_.problems.add(steps.place,
                        cat("a schedule ends with the run: total_num_steps=", *steps.value, ", ", probe_.show("loop.num_iters")),
                        "Say \"auto\", or give both the same number");
  }

  void refuse_contradictions() {
    Draft all = draft_;
    apply_settings(all, settings_);
    for (const Setting& flag : flags_) {
      const Key* key = find_key(flag.key);
      if (key == nullptr) continue;
      const auto is_same = [&](const Setting& setting) { return first_name(setting.key) == first_name(key->path); };
      const auto last = std::find_if(settings_.rbegin(), settings_.rend(), is_same);
      if (last != settings_.rend()) compare(all, flag, *key, *last);
    }
  }

  void compare(const Draft& all, const Setting& flag, const Key& key, const Setting& setting) {
    Draft typed = all;
    apply_settings(typed, {flag});
    const Key& ours = key_at(setting.key);
    const std::string wanted = value_text(all.config, ours);
    std::string given = value_text(typed.config, key);
    if (key.path == "precision.enable_amp") {
      const bool is_on = all.config.precision.amp_mode != AmpMode::None;
      if (typed.config.precision.enable_amp == is_on) return;
    } else if (key.path == kLocal) {
      given = cat(typed.config.loop.local_batch_size.value_or(0) * replicas_);
    }
    if (given == wanted) return;
    draft_.problems.add(setting.flag,
                        cat("contradicts the command line: ", ours.flat, "=", wanted, ", ", flag.flag, " ", flag.text),
                        "Give only one of them, or say \"auto\" in the file");
  }

  void add_notes() {
    if (!ds_.without_effect.empty()) {
      draft_.notes.push_back(
          cat(ds_.name, ": without effect here (docs/reference/ds_config.md): ", join(ds_.without_effect, ", ")));
    }
    if (!ds_.own.empty()) draft_.notes.push_back(cat(ds_.name, ": auto, as our own keys say: ", join(ds_.own, ", ")));
  }

  Draft& draft_;
  const DsConfig& ds_;
  const std::vector<Setting>& flags_;
  Draft probe_;  // with the flags: the batch and the length by our own keys
  int64_t replicas_ = 0;
  std::vector<Setting> settings_;
};

}  // namespace

std::vector<Setting> read_ds_settings(Draft& draft, const std::string& path, const std::vector<Setting>& flags,
                                      int64_t world_size) {
  std::string text;
  try {
    text = read_file(path, YamlLimits{}.bytes);
  } catch (const Error& error) {
    throw ConfigError("config", cat("the file cannot be read: --ds_config ", path, ": ", error.what()),
                      "Give DeepSpeed's JSON, of at most 1 MiB");
  }
  const DsConfig ds = read_ds_config(text, path, draft.problems);
  return DsSettings(draft, ds, flags, world_size).run();
}

}  // namespace welkin::config
