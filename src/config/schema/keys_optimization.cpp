// SPDX-License-Identifier: Apache-2.0
// Rows of the components `loss`, `optimizer`, `schedule` and `precision`.
#include "config/schema/key.h"

namespace welkin::config {
namespace {

template <auto... Members>
constexpr auto kLoss = &member<&RunConfig::loss, Members...>;
template <auto... Members>
constexpr auto kOptimizer = &member<&RunConfig::optimizer, Members...>;
template <auto... Members>
constexpr auto kSchedule = &member<&RunConfig::schedule, Members...>;
template <auto... Members>
constexpr auto kPrecision = &member<&RunConfig::precision, Members...>;

using O = OptimizerConfig;
using S = ScheduleConfig;
using P = PrecisionConfig;

std::vector<Key> loss_keys() {
  return {
      {.flat = "loss",
       .path = "loss.loss",
       .field = kLoss<&LossConfig::loss>,
       .summary = "relative_l2, l1_rho or a plug-in's; by the model when not given"},
      {.flat = "lambda_rho",
       .path = "loss.lambda_rho",
       .field = kLoss<&LossConfig::lambda_rho>,
       .summary = "weight of the density term of l1_rho",
       .range = at_least(0),
       .tutorials = kUnetTutorials,
       .scope = Scope::Boxes},
  };
}

std::vector<Key> optimizer_keys() {
  return {
      {.flat = "optimizer",
       .path = "optimizer.optimizer",
       .field = kOptimizer<&O::optimizer>,
       .summary = "Adam, AdamW, SGD or a plug-in's",
       .tutorials = kVitTutorials,
       .common = Common::Training},
      {.flat = "lr",
       .path = "optimizer.lr",
       .field = kOptimizer<&O::lr>,
       .summary = "learning rate before `scaling`; the same value as lr_schedule.start_lr",
       .range = at_least(0),
       .tutorials = kVitTutorials,
       .common = Common::Training},
      {.flat = "betas",
       .path = "optimizer.betas",
       .field = kOptimizer<&O::betas>,
       .summary = "decay rates of Adam's two averages; 0.9 and 0.95 for the ViT, else 0.9 and 0.999",
       .range = rate(),
       .size = 2},
      {.flat = "eps",
       .path = "optimizer.eps",
       .field = kOptimizer<&O::eps>,
       .summary = "Adam's term in the denominator",
       .range = at_least(0)},
      {.flat = "weight_decay",
       .path = "optimizer.weight_decay",
       .field = kOptimizer<&O::weight_decay>,
       .summary = "Adam, SGD: added to the gradient; AdamW: decoupled",
       .range = at_least(0)},
      {.flat = "momentum",
       .path = "optimizer.momentum",
       .field = kOptimizer<&O::momentum>,
       .summary = "SGD's momentum",
       .range = rate()},
      {.flat = "clip_norm",
       .path = "optimizer.clip_norm",
       .field = kOptimizer<&O::clip_norm>,
       .summary = "largest global 2-norm of the gradient, after unscaling; 0 = no clipping",
       .range = at_least(0)},
      {.flat = "freeze",
       .path = "optimizer.freeze",
       .field = kOptimizer<&O::freeze>,
       .summary =
           "parameters that keep their values: patterns of their names, in which * stands for any text and ? for a character",
       .is_flag = true,
       .pinned = true},
  };
}

std::vector<Key> schedule_keys() {
  return {
      {.flat = "lr_schedule",
       .path = "schedule.schedule",
       .field = kSchedule<&S::schedule>,
       .summary = "constant, linear, cosine, table, unet_tutorial, vit_tutorial or a plug-in's; cosine when not given",
       .aliases = "schedule",
       .tutorials = kVitTutorials},
      {.flat = "lr_schedule.scaling",
       .path = "schedule.scaling",
       .field = kSchedule<&S::scaling>,
       .summary = "how the rate follows global_batch_size over base_batch_size",
       .tutorials = kUnetTutorials},
      {.flat = "lr_schedule.start_lr",
       .path = "schedule.start_lr",
       .field = kSchedule<&S::start_lr>,
       .summary = "learning rate before `scaling`; the same value as lr",
       .range = at_least(0),
       .tutorials = kUnetTutorials},
      {.flat = "lr_schedule.end_lr",
       .path = "schedule.end_lr",
       .field = kSchedule<&S::end_lr>,
       .summary = "learning rate at the last step",
       .range = at_least(0),
       .tutorials = kUnetTutorials},
      {.flat = "lr_schedule.warmup_steps",
       .path = "schedule.warmup_steps",
       .field = kSchedule<&S::warmup_steps>,
       .summary = "length of the linear ramp; U-Net: only where the batch is larger than base_batch_size",
       .unit = "steps",
       .range = at_least(0),
       .aliases = "warmup",
       .tutorials = kAllTutorials},
      {.flat = "lr_schedule.table",
       .path = "schedule.table",
       .field = kSchedule<&S::table>,
       .summary = "schedule `table`: step, rate, step, rate, ...; linear in between",
       .range = at_least(0)},
  };
}

std::vector<Key> precision_keys() {
  return {
      {.flat = "amp_mode",
       .path = "precision.amp_mode",
       .field = kPrecision<&P::amp_mode>,
       .summary = "mixed precision: none (fp32), fp16 (with a loss scaler) or bf16",
       .tutorials = kSc22 | kVitTutorials,
       .null_is_first = true,
       .is_flag = true,
       .flag_tutorials = kSc22 | kVitTutorials,
       .common = Common::EveryVerb},
      {.flat = "enable_amp",
       .path = "precision.enable_amp",
       .field = kPrecision<&P::enable_amp>,
       .summary = "SC21's switch: true = fp16 where amp_mode is not given, false = fp32",
       .tutorials = kSc21,
       .is_flag = true,
       .flag_tutorials = kSc21},
      {.flat = "loss_scale",
       .path = "precision.loss_scale",
       .field = kPrecision<&P::loss_scale>,
       .summary = "fp16: initial loss scale",
       .range = above(0)},
      {.flat = "loss_scale_window",
       .path = "precision.loss_scale_window",
       .field = kPrecision<&P::loss_scale_window>,
       .summary = "fp16: clean steps before the scale grows",
       .unit = "steps",
       .range = at_least(1)},
      {.flat = "loss_scale_factor",
       .path = "precision.loss_scale_factor",
       .field = kPrecision<&P::loss_scale_factor>,
       .summary = "fp16: growth of the scale, and the inverse of its back-off",
       .range = above(1)},
      {.flat = "loss_scale_min",
       .path = "precision.loss_scale_min",
       .field = kPrecision<&P::loss_scale_min>,
       .summary = "fp16: smallest loss scale",
       .range = above(0)},
  };
}

}  // namespace

std::vector<Key> optimization_keys() {
  std::vector<Key> rows = loss_keys();
  for (const auto& more : {optimizer_keys(), schedule_keys(), precision_keys()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace welkin::config
