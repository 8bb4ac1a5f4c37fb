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
       .summary = "relative_l2, l1_rho, mse, mae, huber or a plug-in's; by the model when not given"},
      {.flat = "lambda_rho",
       .path = "loss.lambda_rho",
       .field = kLoss<&LossConfig::lambda_rho>,
       .summary = "weight of the density term of l1_rho",
       .range = at_least(0),
       .tutorials = kUnetTutorials,
       .scope = Scope::Boxes},
      {.flat = "level_weighting",
       .path = "loss.level_weighting",
       .field = kLoss<&LossConfig::level_weighting>,
       .summary = "weights of the channels in the loss by variable and pressure level: all equal, or as makani or GraphCast have "
                  "them"},
      {.flat = "channel_weights",
       .path = "loss.channel_weights",
       .field = kLoss<&LossConfig::channel_weights>,
       .summary = "channel=weight in the loss, over level_weighting; patterns with * and ?, the last that fits holds"},
      {.flat = "latitude_weights",
       .path = "loss.latitude_weights",
       .field = kLoss<&LossConfig::latitude_weights>,
       .summary = "points weigh in the loss as the cosine of their latitude, with mean 1",
       .scope = Scope::Fields},
      {.flat = "huber_delta",
       .path = "loss.huber_delta",
       .field = kLoss<&LossConfig::huber_delta>,
       .summary = "of the loss huber: an error up to it counts as its square over two, a larger one linearly",
       .range = above(0)},
      {.flat = "spectral_weight",
       .path = "loss.spectral_weight",
       .field = kLoss<&LossConfig::spectral_weight>,
       .summary = "weight of a term that compares the amplitude of each wavenumber along longitude; 0 = none",
       .range = at_least(0),
       .scope = Scope::Fields},
      {.flat = "conservation",
       .path = "loss.conservation",
       .field = kLoss<&LossConfig::conservation>,
       .summary = "channel=weight of a term for the squared error of the channel's global mean; patterns with * and ?",
       .scope = Scope::Fields},
  };
}

std::vector<Key> rollout_keys() {
  return {
      {.flat = "multistep",
       .path = "loss.multistep",
       .field = kLoss<&LossConfig::multistep>,
       .summary =
           "steps of the model that a sample is trained for, each fed with the prediction before it; of several numbers each "
           "holds for a part of the run",
       .unit = "steps",
       .range = between(1, 1024),
       .scope = Scope::Fields,
       .is_flag = true},
      {.flat = "multistep_epochs",
       .path = "loss.multistep_epochs",
       .field = kLoss<&LossConfig::multistep_epochs>,
       .summary = "for how many epochs each number of multistep holds, but the last, which holds until the end",
       .unit = "epochs",
       .range = at_least(1),
       .scope = Scope::Fields},
      {.flat = "multistep_iters",
       .path = "loss.multistep_iters",
       .field = kLoss<&LossConfig::multistep_iters>,
       .summary = "for how many optimizer steps each number of multistep holds, but the last, which holds until the end",
       .unit = "steps",
       .range = at_least(1),
       .scope = Scope::Fields},
      {.flat = "multistep_recompute",
       .path = "loss.multistep_recompute",
       .field = kLoss<&LossConfig::multistep_recompute>,
       .summary = "each step of the model keeps its input alone and runs again in the backward pass: the memory of one step for "
                  "another forward pass, the same numbers",
       .scope = Scope::Fields,
       .is_flag = true,
       .free = true},
      {.flat = "multistep_gradient",
       .path = "loss.multistep_gradient",
       .field = kLoss<&LossConfig::multistep_gradient>,
       .summary =
           "all: the loss is the mean over the steps, and its gradient goes through all of them; last: the loss is that of "
           "the last step, and the steps before it have no gradient (push-forward)",
       .scope = Scope::Fields},
      {.flat = "ensemble_members",
       .path = "loss.ensemble_members",
       .field = kLoss<&LossConfig::ensemble_members>,
       .summary =
           "members of an ensemble that a training step makes of each sample, which dropout and input_noise tell apart; of "
           "several the loss mae becomes their continuous ranked probability score, in its fair form",
       .unit = "members",
       .range = between(1, 256),
       .scope = Scope::Fields},
      {.flat = "replay_buffer",
       .path = "loss.replay_buffer",
       .field = kLoss<&LossConfig::replay_buffer>,
       .summary =
           "states that the model has predicted in earlier steps and that are inputs of later ones (replay buffer), so many for "
           "each sample of the batch; 0: every input is that of the data",
       .unit = "states",
       .range = between(0, 1048576),
       .scope = Scope::Fields},
      {.flat = "replay_steps",
       .path = "loss.replay_steps",
       .field = kLoss<&LossConfig::replay_steps>,
       .summary = "steps of the model that a rollout in the replay buffer has, before a sample of the data takes its place",
       .unit = "steps",
       .range = between(2, 65536),
       .scope = Scope::Fields},
      {.flat = "input_noise",
       .path = "loss.input_noise",
       .field = kLoss<&LossConfig::input_noise>,
       .summary =
           "standard deviation of Gaussian noise on the input's predicted channels in training, in those of a channel "
           "over the training data; of a channel with a logarithm, or without statistics, in the units that the model sees",
       .range = at_least(0),
       .scope = Scope::Fields},
  };
}

std::vector<Key> optimizer_keys() {
  return {
      {.flat = "optimizer",
       .path = "optimizer.optimizer",
       .field = kOptimizer<&O::optimizer>,
       .summary = "Adam, AdamW, SGD, Lion, LAMB, LARS, Adafactor, Muon or a plug-in's",
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
       .summary = "decay rates of the two averages of Adam, AdamW, Lion and LAMB; Lion 0.9 and 0.99, the ViT 0.9 and 0.95, else "
                  "0.9 and 0.999",
       .range = rate(),
       .size = 2},
      {.flat = "eps",
       .path = "optimizer.eps",
       .field = kOptimizer<&O::eps>,
       .summary =
           "term in the denominator: Adam, AdamW 1e-8, LAMB 1e-6; Adafactor: smallest root of an average of squares, 2^-23",
       .range = at_least(0)},
      {.flat = "weight_decay",
       .path = "optimizer.weight_decay",
       .field = kOptimizer<&O::weight_decay>,
       .summary = "Adam, SGD, LARS: added to the gradient; LAMB: added to the update; the others: decoupled",
       .range = at_least(0)},
      {.flat = "momentum",
       .path = "optimizer.momentum",
       .field = kOptimizer<&O::momentum>,
       .summary = "of SGD and LARS 0.9, of Muon 0.95",
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

std::vector<Key> lean_optimizer_keys() {
  return {
      {.flat = "optimizer_state",
       .path = "optimizer.optimizer_state",
       .field = kOptimizer<&O::optimizer_state>,
       .summary =
           "how Adam and AdamW keep the averages of large weights: fp32, bf16 (rounded at random) or 8bit (blocks of 256)"},
      {.flat = "trust_coefficient",
       .path = "optimizer.trust_coefficient",
       .field = kOptimizer<&O::trust_coefficient>,
       .summary = "LARS: rate of a layer over the quotient of its norms",
       .range = above(0)},
      {.flat = "lamb_min_ratio",
       .path = "optimizer.lamb_min_ratio",
       .field = kOptimizer<&O::lamb_min_ratio>,
       .summary = "LAMB: least quotient of norms, by which the rate of a layer is scaled",
       .range = {.min = 0}},
      {.flat = "lamb_max_ratio",
       .path = "optimizer.lamb_max_ratio",
       .field = kOptimizer<&O::lamb_max_ratio>,
       .summary = "LAMB: largest quotient of norms; 0 = it has no bound",
       .range = {.min = 0}},
      {.flat = "adafactor_factored",
       .path = "optimizer.adafactor_factored",
       .field = kOptimizer<&O::adafactor_factored>,
       .summary = "Adafactor keeps averages of the rows and columns of a matrix instead of one for each weight"},
      {.flat = "adafactor_decay",
       .path = "optimizer.adafactor_decay",
       .field = kOptimizer<&O::adafactor_decay>,
       .summary = "Adafactor: a step's squares enter their average with the weight step^adafactor_decay",
       .range = {.max = 0}},
      {.flat = "adafactor_clip",
       .path = "optimizer.adafactor_clip",
       .field = kOptimizer<&O::adafactor_clip>,
       .summary = "Adafactor: largest root mean square of a parameter's update",
       .range = above(0)},
      {.flat = "adafactor_min_scale",
       .path = "optimizer.adafactor_min_scale",
       .field = kOptimizer<&O::adafactor_min_scale>,
       .summary = "Adafactor: steps are relative to a parameter's root mean square, taken as no less than this",
       .range = above(0)},
      {.flat = "muon_scale",
       .path = "optimizer.muon_scale",
       .field = kOptimizer<&O::muon_scale>,
       .summary = "Muon: match_rms_adamw (steps as large as AdamW's, so one rate serves both) or original"},
      {.flat = "muon_steps",
       .path = "optimizer.muon_steps",
       .field = kOptimizer<&O::muon_steps>,
       .summary = "Muon: steps of the Newton-Schulz iteration",
       .range = between(1, 99)},
      {.flat = "muon_nesterov",
       .path = "optimizer.muon_nesterov",
       .field = kOptimizer<&O::muon_nesterov>,
       .summary = "Muon: Nesterov's momentum"},
      {.flat = "muon_except",
       .path = "optimizer.muon_except",
       .field = kOptimizer<&O::muon_except>,
       .summary = "weights that Muon leaves to AdamW besides biases and norms: patterns of their names",
       .pinned = true},
      {.flat = "ema_decay",
       .path = "optimizer.ema_decay",
       .field = kOptimizer<&O::ema_decay>,
       .summary = "decay of the moving average of weights that is kept beside them; 0 = none",
       .range = rate()},
      {.flat = "ema_warmup",
       .path = "optimizer.ema_warmup",
       .field = kOptimizer<&O::ema_warmup>,
       .summary = "the average's decay is at most (1 + updates) / (10 + updates)"},
      {.flat = "ema_validate",
       .path = "optimizer.ema_validate",
       .field = kOptimizer<&O::ema_validate>,
       .summary = "validation looks at the moving average of weights"},
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
      {.flat = "lr_schedule.warmup_start_lr",
       .path = "schedule.warmup_start_lr",
       .field = kSchedule<&S::warmup_start_lr>,
       .summary = "learning rate that the ramp rises from",
       .range = at_least(0)},
      {.flat = "lr_schedule.warmup_form",
       .path = "schedule.warmup_form",
       .field = kSchedule<&S::warmup_form>,
       .summary = "how the ramp rises: linear, or log: with the logarithm of the step, as DeepSpeed's schedules"},
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
  for (const auto& more : {rollout_keys(), optimizer_keys(), lean_optimizer_keys(), schedule_keys(), precision_keys()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace welkin::config
