// SPDX-License-Identifier: Apache-2.0
#include "train/step/setup.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "ops/arithmetic/state_codes.h"
#include "ops/base/recompute.h"
#include "parallel/comm/collectives.h"
#include "parallel/shard/data_parallel.h"
#include "parallel/sharding/sharded_parallel.h"
#include "train/device/attention_choice.h"
#include "train/learn/weighted_loss.h"
#include "train/offload/offload.h"
#include "train/recompute/activation_checkpointing.h"
#include "train/rollout/curriculum.h"
#include "train/step/checkpointing_budget.h"
#include "train/step/freeze.h"
#include "train/step/model_setup.h"
#include "train/step/stages.h"

namespace welkin::train {
namespace {

parallel::DataParallelOptions data_parallel_options(const config::ParallelConfig& config) {
  parallel::DataParallelOptions options;
  options.bucket_cap_mb = config.bucket_cap_mb;
  options.sum_in_buckets = config.disable_broadcast_buffers;
  options.static_graph = config.static_graph;
  options.exchange = !config.noddp && !config.rank_invariant;
  options.comm_dtype = config.compress_gradients;
  return options;
}

// Wavenumbers need whole rows.
void check_spectral(const Layout& layout, const config::RunConfig& config) {
  if (config.loss.spectral_weight == 0 || layout.shard.is_whole()) return;
  throw ConfigError("loss",
                    cat("ranks that share a sample hold parts of its rows, so no rank can compute the spectrum: spectral_weight=",
                        config.loss.spectral_weight, ", context_parallel=", config.parallel.context_parallel,
                        ", spatial=", config::text_of(config.parallel.spatial)),
                    config.parallel.spatial.size() == 1 ? "Set context_io to gathered, or spectral_weight to 0"
                                                        : "Leave spatial out, or set spectral_weight to 0");
}

// Boxes have no steps in time, and no noise on states alone.
void roll_out(TrainSetup& setup, const SetupSource& source) {
  const config::RunConfig& config = source.config;
  const bool disturbs = config.loss.input_noise > 0 || config.loss.ensemble_members > 1;
  if (!has_sequences(config, source.spec) && (!disturbs || source.spec.target.shape.size() != 3)) return;
  setup.rollout = std::make_unique<TrainingRollout>(source.spec, config, setup.layout.shard.region(), source.device);
  setup.runs_steps_again = config.loss.multistep_recompute;
  if (setup.pipeline && setup.runs_steps_again) {
    setup.pipeline->run_stages_again([&setup](int64_t chunk) { return setup.weights_of_chunk(chunk); });
  }
}

void init_model(TrainSetup& setup, const SetupSource& source, const SiteInstaller& install) {
  const config::RunConfig& config = source.config;
  setup.model = build_model(source.registries, config, source.spec, source.device);
  setup.model->train();
  setup.table = parallel::ParamTable::of(*setup.model);
  const auto weights = defer_weights(setup, config);
  if (setup.layout.plan) parallel::apply_plan(*setup.layout.plan, *setup.model, setup.table, setup.layout.groups, weights);
  setup.freeze_note = freeze_parameters(setup.table, config.optimizer.freeze);
  install(*setup.model, setup.table);
  setup.table.check_strides();
  keep_own_stages(setup, source, weights);
  check_spectral(setup.layout, config);
  setup.loss = make_loss(source.registries.losses.at(config.loss.loss), config, source.spec, source.device);
  roll_out(setup, source);
}

parallel::ShardingOptions sharding_options(const config::RunConfig& run) {
  const config::ParallelConfig& config = run.parallel;
  return {.stage = config.shard,
          .bucket_cap_mb = config.bucket_cap_mb,
          .comm_dtype = data_parallel_options(config).comm_dtype,
          .gather_dtype = config.shard_gather_dtype,
          .block = run.optimizer.optimizer_state == config::OptimizerState::Bits8 ? ops::kCodedBlock : 1,
          .gather = {.reshard_after_forward = config.reshard_after_forward, .prefetch = config.shard_prefetch}};
}

// For weights that are brought and for activation offload a stage's pass is a forward pass.
void surround_passes(TrainSetup& setup) {
  if (!setup.pipeline) return;
  const auto before = [&setup](int64_t chunk) {
    if (setup.activation_offload) setup.activation_offload->begin_pass();
    setup.data_parallel->before_chunk(chunk);
  };
  setup.pipeline->surround_forward(before, [&setup] { setup.data_parallel->after_forward(); });
}

void exchange_gradients(TrainSetup& setup, const SetupSource& source) {
  const config::ParallelConfig& config = source.config.parallel;
  if (setup.is_sharded()) {
    setup.data_parallel = std::make_unique<parallel::ShardedParallel>(*setup.model, setup.table, setup.layout.sharding,
                                                                      sharding_options(source.config));
    return;
  }
  setup.data_parallel =
      std::make_unique<parallel::DataParallel>(setup.table, setup.layout.exchange, data_parallel_options(config));
  if (config.rank_invariant) setup.unit_sum = std::make_unique<parallel::TreeSum>(setup.layout.replicas);
}

void build_optimizer(TrainSetup& setup, const SetupSource& source, const RunLength& length) {
  const config::RunConfig& config = source.config;
  Offload offload(config, source.device);
  setup.data_parallel = offload.weights(std::move(setup.data_parallel), *setup.model, setup.table);
  setup.activation_offload = offload.activations(*setup.model, setup.table);
  const OptimizerEntry& entry = source.registries.optimizers.at(config.optimizer.optimizer);
  setup.optimizer =
      offload.optimizer(entry.make, entry.scope, entry.states(config.optimizer), optimizer_parameters(setup.table, setup.layout));
  if (config.optimizer.ema_decay > 0) setup.weight_average = offload.average(optimizer_parameters(setup.table, setup.layout));
  setup.offload_notes = offload.notes();
  if (source.device.is_cpu()) setup.offload_buffers = offload.buffer_bytes();
  setup.scaler = std::make_unique<LossScaler>(config.precision, source.device);
  const LrSchedulePtr schedule = source.registries.schedules.at(config.schedule.schedule)(config, length);
  setup.lr_table = std::make_unique<LrTable>(*schedule, length.total_steps, source.device, config.rules.rate_rule);
  if (config.health.on_spike != config::SpikeAction::Off) {
    setup.spikes = std::make_unique<SpikeGuard>(config.health, source.device);
  }
  setup.counter = at::full({}, int64_t{0}, at::TensorOptions(at::kLong).device(source.device));
}

}  // namespace

at::Tensor TrainSetup::forward(const at::Tensor& input, const model::ForwardContext& context) const {
  if (pipeline) return pipeline->forward(std::vector{parallel::PipelineBatch{input, context}}).front();
  data_parallel->before_forward();
  at::Tensor output = model->forward(input, context);
  data_parallel->after_forward();
  return output;
}

// A step of the model in training: if steps run again, it keeps only its input.
at::Tensor TrainSetup::forward_step(const at::Tensor& input, const model::ForwardContext& context) const {
  if (!runs_steps_again || !at::GradMode::is_enabled()) return forward(input, context);
  std::vector<at::Tensor> weights;
  for (const parallel::ParamRow& row : table.rows()) weights.push_back(row.local);
  data_parallel->before_forward();
  const auto again = [this, context](std::vector<at::Tensor> in) { return std::vector{model->forward(in.front(), context)}; };
  std::vector<at::Tensor> output = ops::recomputed(again, {input}, weights);
  data_parallel->after_forward();
  return output.front();
}

std::vector<at::Tensor> TrainSetup::weights_of_chunk(int64_t chunk) const {
  std::vector<at::Tensor> weights;
  for (const parallel::ParamRow& row : table.rows()) {
    if (row.chunk == chunk || std::ranges::find(row.other_chunks, chunk) != row.other_chunks.end()) weights.push_back(row.local);
  }
  return weights;
}

at::Tensor TrainSetup::losses(const at::Tensor& input, const at::Tensor& target, const model::ForwardContext& context,
                              const PredictionHook& on_first) const {
  if (!rollout) {
    const at::Tensor prediction = forward(input, context);
    if (on_first) on_first(prediction);
    return layout.shard.losses(*loss, prediction, target);
  }
  const StepOfModel step{
      .forward = [this](const at::Tensor& in, const model::ForwardContext& own) { return forward_step(in, own); },
      .losses = [this](const at::Tensor& prediction,
                       const at::Tensor& of_lead) { return layout.shard.losses(*loss, prediction, of_lead); }};
  return rollout->losses(input, target, context, step, on_first);
}

// Makes the same passes as the other ranks, in the same order.
at::Tensor TrainSetup::outputs_of_zeros(const at::Tensor& input, const at::Tensor& target) const {
  if (!rollout) return forward_zeros(input).sum();
  const auto zeros = [](const at::Tensor& like) {
    std::vector<int64_t> sizes = like.sizes().vec();
    sizes.front() = 1;
    return at::zeros(sizes, like.options().requires_grad(false));
  };
  const StepOfModel step{
      .forward = [this](const at::Tensor& in, const model::ForwardContext& own) { return forward_step(in, own); }};
  return rollout->outputs(zeros(input), zeros(target), {.seed = 0, .step = counter, .sample = at::zeros({1}, counter.options())},
                          step);
}

at::Tensor TrainSetup::forward_zeros(const at::Tensor& like) const {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.front() = 1;
  return forward(at::zeros(sizes, like.options().requires_grad(false)),
                 {.seed = 0, .step = counter, .sample = at::zeros({1}, counter.options())});
}

int64_t TrainSetup::joint_passes(int64_t own) const {
  if (!joins_passes()) return own;
  const at::Tensor most = at::full({1}, own, at::kLong);
  parallel::all_reduce_in_place(layout.exchange, most, parallel::Reduction::Max);
  return most.item<int64_t>();
}

std::unique_ptr<TrainSetup> make_setup(const Layout& layout, const SetupSource& source, const RunLength& length) {
  const config::RunConfig& config = source.config;
  check_offload(config, source.device);
  if (config.loop.activation_checkpointing.part != config::CheckpointedPart::Budget) {
    return make_setup(layout, source, length, [&](model::Model& model, const parallel::ParamTable& table) {
      checkpoint_activations(model, table, config);
    });
  }
  const BudgetChoice choice = choose_for_budget(layout, source, length);
  auto setup = make_setup(layout, source, length, [&](model::Model& model, const parallel::ParamTable& table) {
    run_again(sites_named(model, choice.sites), table);
  });
  setup->checkpointing_note = choice.note;
  setup->predicted = {.peak_bytes = choice.peak_bytes, .seconds = choice.step_seconds};
  return setup;
}

std::unique_ptr<TrainSetup> make_setup(const Layout& layout, const SetupSource& source, const RunLength& length,
                                       const SiteInstaller& install) {
  auto setup = std::make_unique<TrainSetup>(layout);
  const std::vector<std::string> planned = source.registries.plans.names();
  setup->has_plan = std::ranges::find(planned, source.config.model.model) != planned.end();
  try {
    init_model(*setup, source, install);
    exchange_gradients(*setup, source);
    surround_passes(*setup);
    setup->attention_note = choose_attention(source.config, attention_size(source.registries, source.config, source.spec),
                                             source.config.parallel.tensor_parallel, source.device, source.world_group);
    build_optimizer(*setup, source, length);
  } catch (const std::exception&) {
    const MemoryError error = memory_error_in_flight(source.config);
    throw explained(error, known_memory(setup.get(), source.buffer_bytes, /*has_buffers=*/true), source.config);
  }
  return setup;
}

KnownMemory known_memory(const TrainSetup* setup, int64_t buffers, bool has_buffers) {
  if (setup == nullptr) return known_memory(parallel::ParamTable(), nullptr, buffers, has_buffers);
  KnownMemory known = known_memory(setup->table, setup->optimizer.get(), buffers, has_buffers);
  if (setup->weight_average) {
    for (const NamedState& state : setup->weight_average->states()) known.optimizer += state.held_bytes();
  }
  known.buffers += setup->offload_buffers;
  known.has_plan = setup->has_plan;
  known.has_blocks = setup->model != nullptr && has_blocks(*setup->model);
  return known;
}

}  // namespace welkin::train
