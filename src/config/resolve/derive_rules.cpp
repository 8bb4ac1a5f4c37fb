// SPDX-License-Identifier: Apache-2.0
// The rules of --compat, and the cuDNN settings of --deterministic. A key that is given keeps its value.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "config/draft/origin.h"
#include "config/resolve/derive.h"
#include "core/text.h"

namespace welkin::config {
namespace {

bool uses_dali(const RunConfig& config) {
  const std::optional<Loader> loader = config.data.data_loader_config;
  return loader == Loader::Dali || loader == Loader::DaliLowMem;
}

// `lr_schedule: cosine` of the ViT files means their own schedule; any other spelling means ours.
bool names_a_schedule(const Draft& draft) {
  if (!draft.has("schedule.schedule")) return false;
  if (draft.origin("schedule.schedule").layer == Layer::Flag) return true;
  const bool is_theirs = std::find(draft.names.begin(), draft.names.end(), "lr_schedule") != draft.names.end();
  return !is_theirs || draft.config.schedule.schedule != "cosine";
}

std::string compat_text(const Draft& draft) { return cat("compat ", name_of(draft.config.loop.compat.value())); }

template <typename Rule>
struct OldRule {
  std::string_view path;
  Rule RuleConfig::*value;
  Rule old;
};

template <typename Rule>
void take(Draft& draft, const OldRule<Rule>& rule) {
  if (draft.has(rule.path)) return;
  draft.config.rules.*rule.value = rule.old;
  draft.derived(rule.path, compat_text(draft));
}

constexpr OldRule<CropRule> kCrops{"rules.crop_rule", &RuleConfig::crop_rule, CropRule::Exclusive};
constexpr OldRule<ValidationRule> kDrawn{"rules.validation_rule", &RuleConfig::validation_rule, ValidationRule::Drawn};
constexpr OldRule<ValidationRule> kFullBatches{"rules.validation_rule", &RuleConfig::validation_rule,
                                               ValidationRule::FullBatches};
constexpr OldRule<PairRule> kPairs{"rules.pair_rule", &RuleConfig::pair_rule, PairRule::FirstFile};
constexpr OldRule<LengthRule> kLength{"rules.length_rule", &RuleConfig::length_rule, LengthRule::WholeEpochs};
constexpr OldRule<RateRule> kRate{"rules.rate_rule", &RuleConfig::rate_rule, RateRule::Iterations};
constexpr OldRule<ShardRule> kPadded{"rules.shard_rule", &RuleConfig::shard_rule, ShardRule::Padded};
constexpr OldRule<ShardRule> kTruncated{"rules.shard_rule", &RuleConfig::shard_rule, ShardRule::Truncated};
constexpr OldRule<FirstBatchRule> kConsumed{"rules.first_batch_rule", &RuleConfig::first_batch_rule, FirstBatchRule::Consumed};

// The HDF5 loaders turn by 24 maps, 8 of them reflections. DALI's: SC21 rotates, then flips; SC22 discards the rotation, and its
// flip of the depth does nothing.
Augmentation old_augmentation(const RunConfig& config) {
  if (!uses_dali(config)) return Augmentation::Tutorial;
  return config.loop.compat == Compat::Sc21 ? Augmentation::Octahedral : Augmentation::Flips;
}

void take_unet_rules(Draft& draft) {
  take(draft, kCrops);
  take(draft, kDrawn);
  if (draft.has("data.augment")) return;
  draft.config.data.augment = old_augmentation(draft.config);
  draft.derived("data.augment", compat_text(draft));
}

void take_vit_rules(Draft& draft) {
  take(draft, kPairs);
  take(draft, kFullBatches);
  take(draft, kLength);
}

void contradicts_deterministic(Draft& draft, std::string_view path) {
  draft.problems.add(draft.place(path),
                     cat("two keys contradict each other: ", draft.show("loop.deterministic"), ", ", draft.show(path)),
                     "Give only one of them");
}

// cuDNN's kernels for tensor cores take boxes in channels-last only: it transposes others before each convolution and back
// after it. Images are read by a matmul of patches, for which the order does not matter.
void derive_layout(Draft& draft) {
  if (draft.has("backend.channels_last") || draft.config.model.model != "unet3d") return;
  draft.config.backend.channels_last = true;
  draft.derived("backend.channels_last", "model unet3d");
}

}  // namespace

void derive_rules(Draft& draft) {
  RunConfig& config = draft.config;
  const std::optional<Compat> compat = config.loop.compat;
  std::string& schedule = config.schedule.schedule;
  if (!compat) {
    if (schedule.empty()) schedule = "cosine";
    return;
  }
  const bool is_unet = compat == Compat::Sc21 || compat == Compat::Sc22;
  if (!names_a_schedule(draft)) {
    schedule = is_unet ? "unet_tutorial" : "vit_tutorial";
    draft.derived("schedule.schedule", compat_text(draft));
  }
  is_unet ? take_unet_rules(draft) : take_vit_rules(draft);
  take(draft, kRate);
  take(draft, uses_dali(config) ? kTruncated : kPadded);
  if (uses_dali(config)) take(draft, kConsumed);
}

void derive_backend(Draft& draft) {
  derive_layout(draft);
  if (!draft.config.loop.deterministic) return;
  BackendConfig& backend = draft.config.backend;
  if (draft.has("backend.cudnn_benchmark") && backend.cudnn_benchmark)
    contradicts_deterministic(draft, "backend.cudnn_benchmark");
  if (draft.has("backend.cudnn_deterministic") && !backend.cudnn_deterministic) {
    contradicts_deterministic(draft, "backend.cudnn_deterministic");
  }
  backend.cudnn_benchmark = false;
  backend.cudnn_deterministic = true;
  for (const char* path : {"backend.cudnn_benchmark", "backend.cudnn_deterministic"}) {
    if (!draft.has(path)) draft.derived(path, "deterministic");
  }
}

}  // namespace welkin::config
